package browser

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"hdsd/test/envoy"
	"hdsd/test/fleet"
	"hdsd/test/scale"
)

// looks is how often the same is looked at.
const looks = 100

// BenchmarkFirstView is how long the first look at a fleet takes: 100,000 endpoints in 1,000
// clusters, 20 of them down, 200 checkers that report every second. "page" is from the
// address until Chromium, without a cache, shows what needs attention, the map and the
// counts; "status" is the command `hdsd status`, its start included; "answer" is
// /v1/status alone.
func BenchmarkFirstView(b *testing.B) {
	w := scale.NewWorld(1000, 100)
	c := scale.Simulate(b, w, 200)
	for endpoint := range 20 {
		w.Set(500*endpoint, true)
	}
	envoy.Eventually(b, fleet.Patience, "20 to be down", func() bool {
		return strings.Contains(string(fetched(b, "http://"+c.HTTP+"/v1/status")), `"healthy":99980,`)
	})
	chromium := open(b, c.HTTP, "/")
	if _, err := chromedp.Call(chromium.ctx, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		var page, status, answer []time.Duration
		size := 0
		for range looks {
			began := time.Now()
			do(chromium, chromedp.Navigate("http://"+c.HTTP+"/?"+began.Format("150405.000000")))
			envoy.Eventually(b, fleet.Patience, "the view", func() bool {
				text := chromium.text()
				return strings.Contains(text, "99980 healthy") && strings.Contains(text, "some down") && strings.Contains(text, "of 1,000 clusters")
			})
			page = append(page, time.Since(began))
			began = time.Now()
			c.Operate("status")
			status = append(status, time.Since(began))
			began = time.Now()
			size = len(fetched(b, "http://"+c.HTTP+"/v1/status"))
			answer = append(answer, time.Since(began))
		}
		bytes := do(chromium, chromedp.Evaluate[float64](`[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].reduce((n, e) => n + e.transferSize, 0)`))
		for name, all := range map[string][]time.Duration{"page": page, "status": status, "answer": answer} {
			slices.Sort(all)
			b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, name+"-p50-ms")
			b.ReportMetric(float64(all[len(all)*99/100-1].Microseconds())/1000, name+"-p99-ms")
		}
		b.ReportMetric(bytes/1000, "page-kB")
		b.ReportMetric(float64(size)/1000, "answer-kB")
		b.ReportMetric(0, "ns/op")
	}
}

func fetched(b testing.TB, url string) []byte {
	b.Helper()
	response, err := http.Get(url)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		b.Fatal(response.Status, err)
	}
	return body
}
