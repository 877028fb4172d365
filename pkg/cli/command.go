// SPDX-License-Identifier: Apache-2.0

// Package cli is the command kubectl muster. It reads a cluster, live or from a snapshot, makes an offline scheduler of
// it (gangadmission.Offline), and prints what that decides. It writes nothing to the cluster.
package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/muster-project/muster/pkg/version"
)

// Exit codes.
const (
	exitFine    = 0
	exitError   = 1
	exitBlocked = 2 // the gang waits, or would not start
)

// errBlocked ends a command with exitBlocked. What it has found out is printed already.
var errBlocked = errors.New("the gang does not start")

// Streams are the input and output of the command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Width is the number of columns of Out. 0: it is no terminal, lines have 120 columns.
	Width int
	// Colour: Out shows colours.
	Colour bool
	// Terminal: Out is a terminal of which the cursor can be moved.
	Terminal bool
}

// OSStreams returns the streams of the process.
func OSStreams() Streams {
	s := Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	fd := int(os.Stdout.Fd())
	if !term.IsTerminal(fd) {
		return s
	}
	if width, _, err := term.GetSize(fd); err == nil {
		s.Width = width
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		s.Width = n
	}
	name := os.Getenv("TERM")
	s.Terminal = name != "" && name != "dumb"
	s.Colour = os.Getenv("NO_COLOR") == "" && s.Terminal
	return s
}

// silence drops what the code of the scheduler and the client libraries log: it is not for users of this command. The
// loggers are global, and must not be replaced while others log.
var silence = sync.OnceFunc(func() {
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
})

// Run runs the command with the arguments of a process, and returns its exit code.
func Run(ctx context.Context, args []string, s Streams) int {
	silence()
	cmd := NewCommand(filepath.Base(args[0]), s) //nolint:contextcheck // ExecuteContext passes it
	cmd.SetArgs(args[1:])
	switch err := cmd.ExecuteContext(ctx); {
	case err == nil:
		return exitFine
	case errors.Is(err, errBlocked):
		return exitBlocked
	default:
		s.complain("error", err.Error())
		return exitError
	}
}

const long = `kubectl muster says why gangs wait, what would let them start, and whether one would start.

It reads the cluster as muster-scheduler does, or a snapshot (--snapshot), and decides with muster-scheduler's own code: the
tree, the planner, the filters of kube-scheduler, and the search for pods to preempt. It writes nothing, and needs only the
right to list objects.

Exit codes: 0 the gang runs or would start, 2 it waits or would not start, 1 an error.`

// options are the flags that all commands have.
type options struct {
	Streams
	overrides  clientcmd.ConfigOverrides
	kubeconfig string
	snapshot   string
	output     string
	limit      time.Duration
	watching   bool
	now        func() time.Time
}

// NewCommand returns the command, called as the program of the name.
func NewCommand(program string, s Streams) *cobra.Command {
	o := &options{Streams: s, now: time.Now}
	name := strings.TrimSuffix(program, ".exe")
	if strings.HasPrefix(name, "kubectl-") {
		name = "kubectl muster"
	}
	root := &cobra.Command{
		Use: "muster", Short: "Why gangs wait, and what would let them start", Long: long,
		SilenceErrors: true, SilenceUsage: true, Version: version.String(),
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: name},
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	flags := root.PersistentFlags()
	flags.StringVar(&o.kubeconfig, clientcmd.RecommendedConfigPathFlag, "", "Path of the kubeconfig file. Empty: as kubectl finds it.")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	clientcmd.BindOverrideFlags(&o.overrides, flags, names)
	flags.StringVar(&o.snapshot, "snapshot", "", "Read this file of kubectl muster snapshot instead of the cluster. -: standard input.")
	flags.StringVarP(&o.output, "output", "o", "", "json or yaml instead of text.")
	root.CompletionOptions.DisableDefaultCmd = true // kubectl has the scripts for shells, and asks plugins: docs/cli.md
	_ = root.RegisterFlagCompletionFunc("namespace", o.completeNames("namespaces", false))
	root.AddCommand(newSnapshot(o), newWhy(o), newTree(o), newWhatIf(o), newTop(o), newLint(o), newDoctor(o))
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return root
}

// completeNames returns the completion of names of objects, of the namespace or of the whole cluster. Errors complete
// nothing.
func (o *options) completeNames(resource string, namespaced bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		namespace := ""
		if namespaced {
			namespace = o.namespace()
		}
		names, err := o.names(cmd.Context(), resource, namespace)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, begin) }), cobra.ShellCompDirectiveNoFileComp
	}
}

// config returns the way to the API server.
func (o *options) config() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &o.overrides)
}

// namespace returns the namespace that names are in.
func (o *options) namespace() string {
	if o.overrides.Context.Namespace != "" {
		return o.overrides.Context.Namespace
	}
	if namespace, _, err := o.config().Namespace(); err == nil && namespace != "" {
		return namespace
	}
	return "default"
}

// width returns the number of columns of text.
func (o *options) width() int {
	if o.Width <= 0 {
		return 120
	}
	return max(o.Width, 40)
}
