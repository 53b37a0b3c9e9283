package demo

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// behaviour is the way in which an upstream answers.
type behaviour int32

const (
	healthy behaviour = iota
	unavailable
	hanging
	refusing // nothing listens
)

// upstream is an HTTP server whose behaviour changes while it runs.
type upstream struct {
	address   string
	requests  atomic.Uint64
	behaviour atomic.Int32
	work      sync.WaitGroup
	server    *http.Server // nil while it refuses
}

func startUpstream(address string) (*upstream, error) {
	u := &upstream{address: address}
	return u, u.set(healthy)
}

// set changes the behaviour, from the next request on.
func (u *upstream) set(b behaviour) error {
	u.behaviour.Store(int32(b))
	if b == refusing {
		u.close()
		return nil
	}
	if u.server != nil {
		return nil
	}
	listener, err := net.Listen("tcp", u.address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: u, ReadHeaderTimeout: patience}
	u.server = server
	u.work.Go(func() { _ = server.Serve(listener) }) // until close
	return nil
}

// ServeHTTP answers a request.
func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.requests.Add(1)
	switch behaviour(u.behaviour.Load()) {
	case unavailable:
		w.WriteHeader(http.StatusServiceUnavailable)
	case hanging:
		<-r.Context().Done()
	}
}

// close ends the listener and all connections.
func (u *upstream) close() {
	if u.server == nil {
		return
	}
	_ = u.server.Close() // its connections end in any case
	u.work.Wait()
	u.server = nil
}
