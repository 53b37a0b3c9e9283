package fleet

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hdsd/test/envoy"
)

// wholeLoopback starts a server that answers 200 at one port of every address of 127.0.0.0/8.
func wholeLoopback(t testing.TB) (port int) {
	t.Helper()
	onLoopback := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		failed := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE, "lo")
		})
		if failed != nil {
			return failed
		}
		return err
	}}
	listener, err := onLoopback.Listen(context.Background(), "tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(listener) }) // ends by Close
	t.Cleanup(func() { server.Close(); wg.Wait() })
	return listener.Addr().(*net.TCPAddr).Port
}

// BenchmarkManyEndpointsOfOneChecker counts good endpoints that are published as down: one Envoy with one
// worker probes 10,000 every 10 s, and each has to answer within 0.2 s. First probes are spread as hdsd fills
// that in, or over 2 s.
func BenchmarkManyEndpointsOfOneChecker(b *testing.B) {
	const endpoints = 10_000
	port := wholeLoopback(b)
	var addresses []string
	for i := range endpoints {
		addresses = append(addresses, fmt.Sprintf("127.1.%d.%d:%d", i/250, 1+i%250, port))
	}
	for name, jitter := range map[string]string{"filled in": "", "2s": "initial_jitter: 2s, "} {
		b.Run(name, func(b *testing.B) {
			check := `{timeout: 0.2s, interval: 10s, ` + jitter + `unhealthy_threshold: 2, healthy_threshold: 1, http_health_check: {path: /healthz}}`
			for b.Loop() {
				c := Prepare(b, ClusterFile(StaticCluster("web", check, addresses)), "reporting: {interval: 1s}")
				c.Start()
				checker := envoy.StartChecker(b, envoy.Checker{ID: "checker-1", HDS: c.GRPC})
				began, all, most := time.Now(), time.Duration(0), 0.0
				number := func(status string) float64 {
					return c.Metric(fmt.Sprintf("hdsd_endpoints_by_health{health=%q}", status))
				}
				for time.Since(began) < 2*time.Minute {
					if number("HEALTHY") == endpoints && all == 0 {
						all = time.Since(began)
					}
					most = max(most, number("UNHEALTHY")+number("TIMEOUT"))
					waitFor(time.Second)
				}
				b.ReportMetric(most, "most-down")
				b.ReportMetric(all.Seconds(), "all-up-s") // 0: never
				b.ReportMetric(float64(len(c.Transitions("web"))-endpoints), "more-transitions")
				checker.Kill()
				c.Kill()
			}
		})
	}
}
