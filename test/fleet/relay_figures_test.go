package fleet

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"hdsd/test/envoy"
)

// BenchmarkRelayedEnvoy has real Envoys take all they need from a control plane, and through
// hdsd in front of it, in turns: from the start of the process to the first answer of a
// listener, and from a change of the endpoints at the control plane to the first answer of the
// new one. hdsd has to learn each new endpoint before it passes on.
func BenchmarkRelayedEnvoy(b *testing.B) {
	const rounds = 10
	p, c := Relay(b)
	answers := []int{http.StatusOK, http.StatusAccepted}
	var addresses []string
	for _, status := range answers {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				w.WriteHeader(status)
			}
		}))
		b.Cleanup(server.Close)
		addresses = append(addresses, server.Listener.Addr().String())
	}
	servers := map[string]string{"direct": p.Address, "relayed": c.GRPC}
	for b.Loop() {
		starts, changes := map[string][]time.Duration{}, map[string][]time.Duration{}
		for round := range rounds {
			for _, way := range []string{"direct", "relayed"} {
				id := fmt.Sprintf("%s-%d", way, round)
				front := Front{Plain: envoy.FreeAddress(b), TLS: envoy.FreeAddress(b)}
				p.Say(id, front, addresses[0])
				began := time.Now()
				plane := envoy.Start(b, envoy.Version, id, Bootstrap(b, id, servers[way], true))
				awaitStatus(b, front.Plain, http.StatusOK)
				starts[way] = append(starts[way], time.Since(began))
				for n := range 4 {
					now := (n + 1) % 2
					began = time.Now()
					p.Say(id, front, addresses[now])
					awaitStatus(b, front.Plain, answers[now])
					changes[way] = append(changes[way], time.Since(began))
				}
				plane.Stop(b)
			}
		}
		for way := range servers {
			b.ReportMetric(quantile(starts[way], 0.5), way+"-start-median-ms")
			b.ReportMetric(quantile(starts[way], 1), way+"-start-worst-ms")
			b.ReportMetric(quantile(changes[way], 0.5), way+"-change-median-ms")
			b.ReportMetric(quantile(changes[way], 1), way+"-change-worst-ms")
		}
	}
}

// awaitStatus asks a listener again and again until it answers with a status.
func awaitStatus(b *testing.B, address string, want int) {
	b.Helper()
	for until := time.Now().Add(Patience); ; {
		response, err := traffic.Get("http://" + address + "/")
		if err == nil {
			response.Body.Close()
			if response.StatusCode == want {
				return
			}
		} else if time.Now().After(until) {
			b.Fatal(err)
		}
		if time.Now().After(until) {
			b.Fatalf("%s answers %d, want %d", address, response.StatusCode, want)
		}
	}
}
