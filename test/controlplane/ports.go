// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// A port is a TCP port of 127.0.0.1 that this control plane owns until it is released, even while its server does not
// run.
type port struct {
	number int
	claim  net.Listener
}

// Below the range from which the kernel picks ports for outgoing connections: another client must not get the port of an
// API server that is being restarted.
const firstPort, lastPort = 20000, 29999

// freePort returns a port on which no process listens and which no other control plane of this machine has claimed. A
// claim is an abstract unix socket: it has no file, and ends with its process.
func freePort() (*port, error) {
	for range 1000 {
		number := firstPort + rand.IntN(lastPort-firstPort+1)
		probe, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", number))
		if err != nil {
			continue
		}
		probe.Close()
		claim, err := net.Listen("unix", fmt.Sprintf("@muster-controlplane/%d", number))
		if err != nil {
			continue
		}
		return &port{number: number, claim: claim}, nil
	}
	return nil, errors.New("found no free TCP port on 127.0.0.1")
}

// FreePort returns a TCP port of 127.0.0.1 for a server that the caller starts. It stays claimed until this process
// ends.
func FreePort() (int, error) {
	p, err := freePort()
	if err != nil {
		return 0, err
	}
	return p.number, nil
}

func (p *port) release() {
	if p != nil {
		p.claim.Close()
	}
}

func (p *port) address() string { return fmt.Sprintf("127.0.0.1:%d", p.number) }
