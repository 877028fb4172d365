// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// Below the range from which the kernel picks ports for outgoing connections: another client must not get the port of
// an API server that is being restarted.
const firstPort, lastPort = 20000, 29999

// claims are the ports that this process owns, even while their servers do not run. A claim is an abstract unix socket:
// it has no file, and ends with its process, or when the collector finds it.
var claims struct {
	mu  sync.Mutex
	all []net.Listener // guarded by mu
}

// FreePort returns a TCP port of 127.0.0.1 on which no process listens and which no other control plane of this machine
// has claimed. It stays claimed until this process ends.
func FreePort() (int, error) {
	_, port, err := freeAddress()
	return port, err
}

// freeAddress is FreePort, and returns the address too.
func freeAddress() (address string, port int, err error) {
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		address := fmt.Sprintf("127.0.0.1:%d", port)
		probe, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		probe.Close()
		claim, err := net.Listen("unix", fmt.Sprintf("@muster-controlplane/%d", port))
		if err != nil {
			continue
		}
		claims.mu.Lock()
		defer claims.mu.Unlock()
		claims.all = append(claims.all, claim)
		return address, port, nil
	}
	return "", 0, errors.New("found no free TCP port on 127.0.0.1")
}
