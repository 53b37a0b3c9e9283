package check

import (
	"bufio"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/demo/upstream"
)

// upstreamOnly makes the test binary be nothing but an upstream, so that its
// work and its file descriptors do not count as the checker's.
const upstreamOnly = "HDSD_CHECK_TEST_UPSTREAM"

func TestMain(m *testing.M) {
	if os.Getenv(upstreamOnly) == "" {
		os.Exit(m.Run())
	}
	u, err := upstream.Start(context.Background(), upstream.Options{Address: "0.0.0.0:0"})
	if err != nil {
		panic(err)
	}
	fmt.Println(u.Addr())
	bufio.NewReader(os.Stdin).ReadString('\n') // until the parent ends
	u.Close()
}

// startElsewhere starts an upstream in a process of its own and gives its port.
func startElsewhere(b *testing.B) uint16 {
	b.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), upstreamOnly+"=1")
	stdin, err1 := command.StdinPipe()
	stdout, err2 := command.StdoutPipe()
	if err1 != nil || err2 != nil {
		b.Fatal(err1, err2)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { stdin.Close(); command.Wait() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return netip.MustParseAddrPort(strings.TrimSpace(line)).Port()
}

func many(port uint16, n int) (list []*endpointv3.Endpoint) {
	for i := range n {
		ip := netip.AddrFrom4([4]byte{127, 1 + byte(i>>16), byte(i >> 8), byte(i)})
		list = append(list, endpoint(netip.AddrPortFrom(ip, port).String()))
	}
	return list
}

// One probe after the other on a kept connection, or on one each.
func BenchmarkProbe(b *testing.B) {
	port := startElsewhere(b)
	for name, check := range map[string]*corev3.HealthCheck{"http": httpHealthCheck(), "tcp-connect": tcpHealthCheck()} {
		b.Run(name, func(b *testing.B) {
			s, err := parseSpecifier(one(check, many(port, 1)...))
			if err != nil {
				b.Fatal(err)
			}
			pool := startPool(b)
			h := newHost(s.clusters[0].localities[0].hosts[0])
			p := &prober{check: s.clusters[0].checks[0], host: h, net: &pool.net}
			b.ReportAllocs()
			for b.Loop() {
				if o, _ := p.probe(b.Context()); o != Passed {
					b.Fatal(o)
				}
			}
			p.drop()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "probes/s")
		})
	}
}

// What 10,000 endpoints at an interval of a second cost, by HTTP on kept
// connections, with a report each second; the upstreams in another process.
func BenchmarkTenThousand(b *testing.B) {
	const endpoints = 10_000
	port := startElsewhere(b)
	p := startPool(b)
	apply(b, p, one(httpHealthCheck(func(c *base, _ *httpProbe) {
		c.NoTrafficInterval, c.InitialJitter = durationpb.New(time.Second), durationpb.New(time.Second)
	}), many(port, endpoints)...))
	allUp := func() (any, bool) {
		n := 0
		for _, s := range p.all() {
			if s.status != up {
				n++
			}
		}
		return fmt.Sprint(n, " are not healthy"), n == 0
	}
	eventually(b, allUp)
	before, start := cpu(b), time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for b.Loop() {
		<-tick.C
		if _, err := proto.Marshal(p.report()); err != nil {
			b.Fatal(err)
		}
	}
	elapsed := time.Since(start)
	if got, ok := allUp(); !ok {
		b.Error(got)
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	b.ReportMetric(100*(cpu(b)-before).Seconds()/elapsed.Seconds(), "%core")
	b.ReportMetric(float64(memory.Sys>>20), "MB")
}

func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkReport(b *testing.B) {
	p := startPool(b)
	apply(b, p, specifierOf(clusterOf("web", nil, group("a", many(80, 10_000)...))))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := proto.Marshal(p.report()); err != nil {
			b.Fatal(err)
		}
	}
}
