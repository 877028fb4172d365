// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Options configures a control plane. The zero value is a plain cluster (etcd, API server) in a temporary directory.
type Options struct {
	// Dir is the directory of data, logs, certificates and kubeconfigs. It is created if it does not exist. Empty: a
	// temporary directory, which Stop removes. Stop does not remove a given directory.
	Dir string
	// BinDir is the directory of etcd, kube-apiserver and the other programs. Empty: bin/ of this repository.
	BinDir string
	// Kubernetes is the minor version, "1.36", of kube-apiserver and kube-controller-manager, whose programs have it in
	// their name (hack/controlplane-1.36). Empty: what CONTROLPLANE_KUBERNETES in the environment says, or that of
	// hack/controlplane.
	Kubernetes string

	WithControllerManager bool
	// WithKubelets runs Kubelets, in this process: nodes are ready, and pods start, become ready, and end with exit
	// codes.
	WithKubelets bool

	// NodeLease is how long a node's lease is valid; the node lifecycle controller declares a node lost a quarter
	// later. 0: 40 s, as in real clusters. LoseNode does not wait for it.
	NodeLease time.Duration

	// AuditPolicy is an audit.k8s.io/v1 Policy as YAML; the log is at AuditLog(). Empty: no audit.
	AuditPolicy string
	// APIServerArgs and ControllerManagerArgs come last and override others.
	APIServerArgs, ControllerManagerArgs []string

	// Verbose gets one line per step. nil: no output.
	Verbose io.Writer
}

// ControlPlane is a running control plane. Its methods may be called from several goroutines.
type ControlPlane struct {
	// Etcd, APIServer and ControllerManager are the servers. Each can be killed, and comes back with its port and data
	// when it is restarted. ControllerManager is nil without WithControllerManager.
	Etcd, APIServer, ControllerManager *Process

	options     Options
	dir         string
	unlock      func() // of dir; nil after Stop
	authority   *authority
	etcdAddress string // of its client port
	apiAddress  string

	kubelets     *Kubelets // nil without WithKubelets
	stopKubelets context.CancelFunc

	mu        sync.Mutex
	processes []*Process // guarded by mu; the processes that Stop kills, in the order in which they were made

	admin  *rest.Config
	client kubernetes.Interface
}

// Start starts a control plane and returns when it serves requests and has the namespaces that every cluster has. On an
// error, or when ctx ends first, all processes are stopped.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	log.SetLogger(logr.Discard()) // of clients and caches, which ask for one; what goes wrong is an error, or tried again
	options.BinDir = cmp.Or(options.BinDir, filepath.Join(repository(), "bin"))
	options.Kubernetes = cmp.Or(options.Kubernetes, os.Getenv("CONTROLPLANE_KUBERNETES"))
	options.NodeLease = cmp.Or(options.NodeLease, 40*time.Second)
	if options.Verbose == nil {
		options.Verbose = io.Discard
	}
	cp := &ControlPlane{options: options}
	for _, step := range []func(context.Context) error{cp.makeDir, cp.prepare, cp.startServers} {
		if err := step(ctx); err != nil {
			cp.Stop()
			return nil, err
		}
	}
	return cp, nil
}

// prepare chooses ports and writes keys, certificates and the admin's kubeconfig.
func (cp *ControlPlane) prepare(context.Context) (err error) {
	if cp.etcdAddress, _, err = freeAddress(); err != nil {
		return err
	}
	if cp.apiAddress, _, err = freeAddress(); err != nil {
		return err
	}
	if cp.authority, err = newAuthority(cp.path("pki")); err != nil {
		return err
	}
	if cp.admin, err = cp.UserConfig("admin", "system:masters"); err != nil {
		return err
	}
	if cp.client, err = kubernetes.NewForConfig(cp.admin); err != nil {
		return err
	}
	return WriteKubeconfig(cp.admin, cp.AdminKubeconfig())
}

// Stop kills all processes that were started here, including those of NewProcess, and removes the directory if it is a
// temporary one. It may be called twice. CONTROLPLANE_KEEP=1 in the environment keeps the directory, for its logs.
func (cp *ControlPlane) Stop() {
	cp.mu.Lock()
	processes := cp.processes
	cp.processes = nil
	cp.mu.Unlock()

	if cp.stopKubelets != nil {
		cp.stopKubelets()
	}
	// Newest first: clients, then the API server, then etcd. All are killed without SIGTERM, because their data is not
	// needed, and kube-apiserver takes minutes to exit when etcd has stopped before it.
	for _, p := range slices.Backward(processes) {
		p.Kill()
	}
	if cp.unlock == nil {
		return
	}
	if cp.options.Dir != "" {
		// It is the caller's.
	} else if os.Getenv("CONTROLPLANE_KEEP") != "" {
		fmt.Fprintf(os.Stderr, "the control plane's logs and data are kept in %s\n", cp.dir)
	} else if err := os.RemoveAll(cp.dir); err != nil {
		fmt.Fprintf(os.Stderr, "removing the control plane's directory: %v\n", err)
	}
	cp.unlock()
	cp.unlock = nil
}

// Dir returns the directory of data, logs (NAME.log), certificates and kubeconfigs.
func (cp *ControlPlane) Dir() string { return cp.dir }

// Admin returns a new configuration for a client that may do everything, without a client-side rate limit.
func (cp *ControlPlane) Admin() *rest.Config { return rest.CopyConfig(cp.admin) }

// Client returns the admin's client.
func (cp *ControlPlane) Client() kubernetes.Interface { return cp.client }

// AuditLog returns the path of the audit log, one JSON object a line.
func (cp *ControlPlane) AuditLog() string { return cp.path("audit.log") }

func (cp *ControlPlane) path(name string) string { return filepath.Join(cp.dir, name) }

func (cp *ControlPlane) say(format string, args ...any) {
	fmt.Fprintf(cp.options.Verbose, format+"\n", args...)
}

// repository returns the root of this repository, found from the working directory upwards: go test and go run start
// inside it. "." if it is not found.
func repository() string {
	for dir, err := os.Getwd(); err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "hack", "controlplane", "go.mod")); err == nil {
			return dir
		}
	}
	return "."
}
