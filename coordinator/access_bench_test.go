package coordinator_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkAuthorization measures a query of 20 endpoints over REST on one connection: without access, and
// with the token of the last of 1 and of 100 grants.
func BenchmarkAuthorization(b *testing.B) {
	var clusters strings.Builder
	for i := range 20 {
		clusters.WriteString(oneEndpoint(i))
	}
	type asked struct {
		name string
		*site
		took []time.Duration
	}
	ways := []*asked{{name: "no-access"}, {name: "1-grant"}, {name: "100-grants"}}
	for i, w := range ways {
		text := quick
		if i > 0 {
			text += "access:\n  grants:\n"
			for n := range []int{0, 1, 100}[i] {
				hash := sha256.Sum256(fmt.Append(nil, "secret-", n))
				text += fmt.Sprintf("  - {roles: [VIEWER], token_sha256: %q}\n", hex.EncodeToString(hash[:]))
			}
			text += "probes: {address: \"127.0.0.1:0\"}\n"
		}
		w.site = newSite(b, b.TempDir(), text, clusters.String())
	}
	client := &http.Client{}
	defer client.CloseIdleConnections()
	ask := func(i int) bool {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://"+ways[i].HTTPAddress()+"/v1/endpoints", nil)
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Authorization", fmt.Sprintf("Bearer secret-%d", []int{0, 0, 99}[i]))
		answer, err := client.Do(r)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body)
		return err == nil && answer.StatusCode == http.StatusOK
	}
	for i, w := range ways {
		w.eventually("an answer", func() bool { return ask(i) })
	}
	for b.Loop() {
		for i, w := range ways {
			began := time.Now()
			if !ask(i) {
				b.Fatal("no answer")
			}
			w.took = append(w.took, time.Since(began))
		}
	}
	for _, w := range ways {
		slices.Sort(w.took)
		for _, p := range []int{50, 99} {
			b.ReportMetric(float64(w.took[len(w.took)*p/100].Microseconds()), fmt.Sprintf("us-p%d-%s", p, w.name))
		}
	}
}

func oneEndpoint(i int) string {
	return static(fmt.Sprintf("c%02d", i), fmt.Sprintf("127.0.0.1:%d", 1000+i))
}
