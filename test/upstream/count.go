package upstream

import (
	"context"
	"maps"
	"net/http"
	"sync"
)

// Request is an HTTP probe as it came. For a TCP probe it is zero.
type Request struct {
	Method, Path, Host string
	Header             http.Header
	Body               string
}

// Stats counts probes.
type Stats struct {
	Probes      uint64            // HTTP requests; TCP connections and their further requests
	Connections uint64            // accepted
	Hosts       map[string]uint64 // HTTP requests by their Host header
}

// counter counts probes. mu guards all fields.
type counter struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change
	stats   Stats
	last    Request
}

func (c *counter) init() {
	c.changed = make(chan struct{})
	c.stats.Hosts = map[string]uint64{}
}

func (c *counter) connected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Connections++
}

func (c *counter) probed(r Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Probes++
	c.stats.Hosts[r.Host]++
	c.last = r
	close(c.changed)
	c.changed = make(chan struct{})
}

// Stats returns the counts so far.
func (s *Server) Stats() Stats {
	c := &s.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	stats := c.stats
	stats.Hosts = maps.Clone(stats.Hosts)
	return stats
}

// Last returns the latest HTTP probe.
func (s *Server) Last() Request {
	s.counts.mu.Lock()
	defer s.counts.mu.Unlock()
	return s.counts.last
}

// WaitProbes waits until at least n probes have come since the start.
func (s *Server) WaitProbes(ctx context.Context, n uint64) error {
	c := &s.counts
	for {
		c.mu.Lock()
		enough, changed := c.stats.Probes >= n, c.changed
		c.mu.Unlock()
		if enough {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ctx.Done():
			return http.ErrServerClosed
		}
	}
}
