// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/muster-project/muster/pkg/message"
)

func newSnapshot(o *options) *cobra.Command {
	anonymize := false
	cmd := &cobra.Command{
		Use: "snapshot FILE", Short: "Write what muster-scheduler reads of the cluster into a file",
		Long: `Write what muster-scheduler reads of the cluster into a file, JSON lines compressed with gzip, which all commands take with --snapshot.
It has names, labels, annotations, resources and status of nodes, pods, PodGroups and what else decides where pods run; it has no
commands, environments, ConfigMaps or Secrets. With --anonymize its names, labels, annotations, images and messages are replaced by random
words, the same by the same, so that the answers about it stay.`,
		Example: `  kubectl muster snapshot cluster.json.gz
  kubectl muster snapshot cluster.json.gz --anonymize
  kubectl muster why job/train --snapshot cluster.json.gz`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.takeSnapshot(cmd.Context(), args[0], anonymize)
		},
	}
	cmd.Flags().BoolVar(&anonymize, "anonymize", false, "Replace names and other texts by random words.")
	return cmd
}

// takeSnapshot writes a snapshot into a file; -: to the standard output.
func (o *options) takeSnapshot(ctx context.Context, file string, anonymize bool) error {
	s, err := o.read(ctx)
	if err != nil {
		return err
	}
	if anonymize {
		var key [32]byte
		_, _ = rand.Read(key[:]) // it never fails
		s.Anonymize(key)
	}
	if file == "-" {
		return s.Write(o.Out)
	}
	if err := writeFile(file, s.Write); err != nil {
		return err
	}
	o.warnUnread(s)
	fmt.Fprintf(o.Out, "%s of %s in %s\n", message.Count(len(s.Objects), "object"), s.Taken.Format("2006-01-02 15:04:05"), file)
	return nil
}

// writeFile writes a file; if that fails, there is none, or the one that was there before.
func writeFile(name string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	err = write(file)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return os.Rename(file.Name(), name)
}
