// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-project/muster/pkg/snapshot"
	"github.com/muster-project/muster/pkg/version"
)

// addWatch adds --watch to a command.
func (o *options) addWatch(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.watching, "watch", "w", false, "Show it again whenever it has changed, until the command is interrupted.")
}

// run draws the cluster once, or with --watch whenever it has changed.
func (o *options) run(ctx context.Context, draw func(ctx context.Context, o *options, w *world) error) error {
	if !o.watching {
		w, err := o.world(ctx)
		if err != nil {
			return err
		}
		return draw(ctx, o, w)
	}
	watcher, err := o.watch(ctx)
	if err != nil {
		return err
	}
	o.warnUnread(watcher.Snapshot())
	if late := watcher.Unwatched(); len(late) > 0 {
		o.complain("warning", "you may list, but not watch, "+strings.Join(late, ", ")+" of the whole cluster: changes of them are seen late")
	}
	last := ""
	return o.onChanges(ctx, watcher, func(lost string) error {
		var out bytes.Buffer
		on := *o
		on.Out = &out
		if err := on.drawOnce(ctx, watcher, draw); err != nil {
			on.Err = &out
			on.complain("error", err.Error()) // it may be there again
		}
		if out.String()+lost != last {
			last = out.String() + lost
			o.show(out.String(), lost)
		}
		return nil
	})
}

// drawOnce draws the cluster as the watcher knows it.
func (o *options) drawOnce(ctx context.Context, watcher *snapshot.Watcher, draw func(ctx context.Context, o *options, w *world) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := newWorld(ctx, watcher.Snapshot())
	if err != nil {
		return err
	}
	if err := draw(ctx, o, w); !errors.Is(err, errBlocked) {
		return err
	}
	return nil
}

// watch begins to watch the cluster.
func (o *options) watch(ctx context.Context) (*snapshot.Watcher, error) {
	if o.snapshot != "" {
		return nil, errors.New("--watch needs a cluster: a snapshot does not change")
	}
	config, err := o.restConfig()
	if err != nil {
		return nil, err
	}
	return snapshot.Watch(ctx, config, version.String(), o.now)
}

// minPause is the time between two drawings at least. They are as far apart as the last one took, at least.
const minPause = time.Second

// onChanges calls draw now and whenever the cluster has changed, until ctx ends or draw fails. lost says that the API
// server does not answer, "" if it does.
func (o *options) onChanges(ctx context.Context, watcher *snapshot.Watcher, draw func(lost string) error) error {
	for ctx.Err() == nil {
		start := time.Now()
		lost := ""
		if why, since := watcher.Lost(); why != "" {
			lost = fmt.Sprintf("The API server has not answered since %s, this is what was read before: %s", since.Format(time.TimeOnly), why)
		}
		if err := draw(lost); err != nil && ctx.Err() == nil {
			return err
		}
		for _, ready := range []<-chan struct{}{after(max(minPause, time.Since(start))), watcher.Changed()} {
			select {
			case <-ready:
			case <-ctx.Done():
			}
		}
	}
	return nil
}

// after returns a channel that is closed after the time.
func after(d time.Duration) <-chan struct{} {
	over := make(chan struct{})
	time.AfterFunc(d, func() { close(over) })
	return over
}

// show writes what was drawn: on a terminal in place of what was there, otherwise after it.
func (o *options) show(text, lost string) {
	var out strings.Builder
	switch {
	case o.output != "": // one document after the other
	case o.Terminal:
		out.WriteString("\x1b[H\x1b[2J")
	default:
		fmt.Fprintf(&out, "%s\n", o.now().Format(time.DateTime))
	}
	if lost != "" && o.output != "" {
		o.complain("warning", lost)
	} else if lost != "" {
		for _, line := range wrap(lost, o.width()) {
			out.WriteString(o.colour(red, line) + "\n")
		}
	}
	out.WriteString(text)
	if o.output == "" && !o.Terminal {
		out.WriteString("\n")
	}
	_, _ = io.WriteString(o.Out, out.String())
}
