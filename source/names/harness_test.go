package names

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/miekg/dns"

	"hdsd/source"
)

// server is a DNS server on UDP and TCP of one port, which answers as it is told.
type server struct {
	t       testing.TB
	address string

	mu       sync.Mutex
	records  map[string][]string // by "NAME TYPE": records as in a zone file
	behave   func(network string, w dns.ResponseWriter, question *dns.Msg) (done bool)
	networks []string // of each query
}

func newServer(t testing.TB) *server {
	t.Helper()
	s := &server{t: t, records: map[string][]string{}}
	started := make(chan struct{}, 2)
	tcp := &dns.Server{Addr: "127.0.0.1:0", Net: "tcp", NotifyStartedFunc: func() { started <- struct{}{} }, Handler: s.handler("tcp")}
	serve := func(one *dns.Server) {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = one.ListenAndServe()
		}()
		<-started
		t.Cleanup(func() {
			_ = one.Shutdown()
			<-ended
		})
	}
	serve(tcp)
	s.address = tcp.Listener.Addr().String()
	serve(&dns.Server{Addr: s.address, Net: "udp", NotifyStartedFunc: func() { started <- struct{}{} }, Handler: s.handler("udp")})
	return s
}

// handler answers with the records of the name, NXDOMAIN if it has none of any type.
func (s *server) handler(network string) dns.Handler {
	return dns.HandlerFunc(func(w dns.ResponseWriter, question *dns.Msg) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.networks = append(s.networks, network)
		if s.behave != nil && s.behave(network, w, question) {
			return
		}
		_ = w.WriteMsg(s.answer(question))
	})
}

func (s *server) answer(question *dns.Msg) *dns.Msg {
	out := new(dns.Msg).SetReply(question)
	q := question.Question[0]
	found := false
	for key, lines := range s.records {
		name, kind, _ := strings.Cut(key, " ")
		if !strings.EqualFold(name, q.Name) {
			continue
		}
		found = true
		if kind != dns.TypeToString[q.Qtype] {
			continue
		}
		for _, line := range lines {
			record, err := dns.NewRR(line)
			if err != nil {
				s.t.Errorf("%s: %v", line, err)
			}
			out.Answer = append(out.Answer, record)
		}
	}
	if !found {
		out.Rcode = dns.RcodeNameError
	}
	return out
}

// has sets the addresses of a name.
func (s *server) has(name string, addresses ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[name+". A"], s.records[name+". AAAA"] = nil, nil
	for _, text := range addresses {
		kind := "A"
		if netip.MustParseAddr(text).Is6() {
			kind = "AAAA"
		}
		key := name + ". " + kind
		s.records[key] = append(s.records[key], fmt.Sprintf("%s. 1 IN %s %s", name, kind, text))
	}
}

// does changes how the server answers; nil: by its records.
func (s *server) does(behave func(network string, w dns.ResponseWriter, question *dns.Msg) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behave = behave
}

// rcode answers everything by a code.
func rcode(code int) func(string, dns.ResponseWriter, *dns.Msg) bool {
	return func(_ string, w dns.ResponseWriter, question *dns.Msg) bool {
		_ = w.WriteMsg(new(dns.Msg).SetRcode(question, code))
		return true
	}
}

func silent(string, dns.ResponseWriter, *dns.Msg) bool { return true }

// clientOf is a client that asks servers, and neither the system's files.
func clientOf(t testing.TB, servers ...string) *client {
	c := newClient(servers)
	c.system, c.hosts.path = t.TempDir()+"/none", t.TempDir()+"/none"
	return c
}

// running is a Resolver at work.
type running struct {
	*Resolver
	t       testing.TB
	changes chan struct{}
	stop    func()
}

func run(t testing.TB, r *Resolver) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	all := &running{Resolver: r, t: t, changes: make(chan struct{}, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Run(ctx, func() { notify(all.changes) })
	}()
	var once sync.Once
	all.stop = func() {
		once.Do(func() {
			cancel()
			<-ended
		})
	}
	t.Cleanup(all.stop)
	return all
}

// until waits until a question has these addresses, and whether there is a problem.
func (r *running) until(q Question, want string) {
	r.t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	for {
		if got := said(r.Answer(q)); got == want {
			return
		}
		select {
		case <-r.changes:
		case <-deadline.C:
			r.t.Fatalf("%s is %q, want %q", q.Host, said(r.Answer(q)), want)
		}
	}
}

// said describes an answer, such as "10.0.0.1 10.0.0.2" or "10.0.0.1, but: REASON".
func said(a Answer) string {
	if !a.Known {
		return "unknown"
	}
	all := make([]string, len(a.Addresses))
	for i, address := range a.Addresses {
		all[i] = address.String()
	}
	text := strings.Join(all, " ")
	if a.Problem != "" {
		text += ", but: " + a.Problem
	}
	return text
}

// question asks for a name quickly.
func question(host string, change ...func(*Question)) Question {
	q := Question{Host: host, Family: clusterv3.Cluster_ALL, Refresh: 100 * time.Millisecond}
	for _, c := range change {
		c(&q)
	}
	return q
}

// cluster makes a cluster of a file by its prototext.
func cluster(t testing.TB, name, text string) *source.Cluster {
	t.Helper()
	c := &clusterv3.Cluster{}
	if err := prototext.Unmarshal([]byte(text), c); err != nil {
		t.Fatal(err)
	}
	c.Name = name
	return &source.Cluster{Source: "local", Name: name, ServiceName: name, Config: c, Assignment: source.TakeEndpoints(c), HealthChecks: c.GetHealthChecks(), File: "a.yaml"}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func same(t testing.TB, what string, got, want proto.Message) {
	t.Helper()
	if !proto.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
