package check

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/test/upstream"
)

// upstreamOnly makes the test binary be nothing but an upstream, so that its
// work and its file descriptors do not count as the checker's.
const upstreamOnly = "HDSD_CHECK_TEST_UPSTREAM"

func TestMain(m *testing.M) {
	kind := os.Getenv(upstreamOnly)
	if kind == "" {
		os.Exit(m.Run())
	}
	if s := benchScripts[kind]; s != nil {
		l, err := net.Listen("tcp", "0.0.0.0:0")
		if err != nil {
			panic(err)
		}
		fmt.Println(l.Addr().(*net.TCPAddr).AddrPort())
		go func() {
			for {
				if c, err := l.Accept(); err == nil {
					go s(c)
				}
			}
		}()
		bufio.NewReader(os.Stdin).ReadString('\n')
		return
	}
	u, err := upstream.Start(context.Background(), upstream.Options{Address: "0.0.0.0:0"})
	if err != nil {
		panic(err)
	}
	fmt.Println(u.Addr())
	bufio.NewReader(os.Stdin).ReadString('\n') // until the parent ends
	u.Close()
}

// benchScripts are upstreams of protocols that package upstream does not speak.
var benchScripts = map[string]script{
	"http2": over2(ok2), "grpc": over2(sayServing), "redis": replies("+PONG\r\n"), "https": serveTLS(over1),
}

// serveTLS follows a script behind TLS, with a certificate that nobody signed.
func serveTLS(inner script) script {
	return func(c net.Conn) {
		once.Do(func() { anyCertificate = (&authority{t: &testing.T{}}).issue() })
		behind(with(anyCertificate), inner)(c)
	}
}

var (
	once           sync.Once
	anyCertificate tls.Certificate
)

// benchChecks are the checks that go with the upstreams.
func benchChecks() map[string]*healthv3.HealthCheckSpecifier {
	https := secureSpecifier(&tlsv3.UpstreamTlsContext{})
	return map[string]*healthv3.HealthCheckSpecifier{
		"http": one(httpHealthCheck()), "tcp-connect": one(tcpHealthCheck()), "http2": one(checkOf(over2Check)),
		"grpc": one(checkOf(grpcCheckOf)), "redis": one(checkOf(redisCheckOf(""))), "https": https,
	}
}

// startElsewhere starts an upstream in a process of its own and gives its port.
func startElsewhere(b *testing.B, kind string) uint16 {
	b.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), upstreamOnly+"="+kind)
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
	for name, m := range benchChecks() {
		b.Run(name, func(b *testing.B) {
			m.ClusterHealthChecks[0].LocalityEndpoints = []*healthv3.LocalityEndpoints{group("a", many(startElsewhere(b, name), 1)...)}
			s, err := parseSpecifier(m)
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

// What 10,000 endpoints at an interval of a second cost, on kept connections,
// with a report each second; the upstreams in another process.
func BenchmarkTenThousand(b *testing.B) {
	for name, m := range benchChecks() {
		b.Run(name, func(b *testing.B) { tenThousand(b, name, m) })
	}
}

func tenThousand(b *testing.B, name string, m *healthv3.HealthCheckSpecifier) {
	const endpoints = 10_000
	c := m.GetClusterHealthChecks()[0]
	c.LocalityEndpoints = []*healthv3.LocalityEndpoints{group("a", many(startElsewhere(b, name), endpoints)...)}
	second := durationpb.New(time.Second)
	c.GetHealthChecks()[0].NoTrafficInterval, c.GetHealthChecks()[0].InitialJitter = second, second
	p := startPool(b)
	apply(b, p, m)
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
