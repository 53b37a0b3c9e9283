package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"hdsd/test/scale"
)

const (
	flips   = 30 // that are looked at, each in a cluster of its own
	viewers = 50 // that look at the overview, too
)

// BenchmarkFlip is how long it takes from a verdict, by its recorded time, until Chromium shows it
// on the overview: what needs attention, the counts, the map, the cluster and what changed. 1,000
// clusters of 100 endpoints each (1,000 with HDSD_SCALE=full), 200 checkers that report every second, one
// endpoint that flips twice a second beside, and 49 viewers who ask what the page asks.
// The first flip counts by itself: all viewers come at once right after a first start, while hdsd writes
// the first verdicts, and reads them for incidents. What changed lately lists it once it is written
// ("first-listed"). "core" is hdsd's processor time for each second meanwhile.
func BenchmarkFlip(b *testing.B) {
	each := 100
	if os.Getenv("HDSD_SCALE") == "full" {
		each = 1000
	}
	w := scale.NewWorld(1000, each)
	c := scale.Simulate(b, w, 200)
	chromium := open(b, c.HTTP, "/")
	for range viewers - 1 {
		go look(b.Context(), "http://"+c.HTTP)
	}
	go flap(b.Context(), w)
	chromium.shows("of 1,000 clusters", true)
	busy, began := c.Metric("process_cpu_seconds_total"), time.Now()
	for b.Loop() {
		var all []time.Duration
		for flip := range 1 + flips {
			endpoint := (flip + 1) * each
			name, address := w.Name(flip+1), w.Address(endpoint)
			// The page tells the time when it shows it.
			do(chromium, chromedp.Evaluate[bool](fmt.Sprintf(`{
				const part = label => document.querySelector("section[aria-label='" + label + "']")?.textContent ?? "";
				const when = condition => new Promise(done => { const look = () => condition() ? done(Date.now()) : requestAnimationFrame(look); look() });
				window.shown = when(() => part("Where it is down").includes(%q) && part("Clusters").includes(%q + "1 of"));
				window.listed = when(() => part("What changed lately").includes(%q));
			} true`, name, name, name+" "+address)))
			w.Set(endpoint, true)
			shown := time.UnixMilli(do(chromium, chromedp.Evaluate[int64]("window.shown", chromedp.EvalAwaitPromise)))
			listed := time.UnixMilli(do(chromium, chromedp.Evaluate[int64]("window.listed", chromedp.EvalAwaitPromise)))
			var recorded struct{ Transitions []struct{ Time time.Time } }
			if err := json.Unmarshal(fetched(b, "http://"+c.HTTP+"/v1/transitions?newestFirst=true&pageSize=1&cluster="+name), &recorded); err != nil || len(recorded.Transitions) == 0 {
				b.Fatal(err, recorded)
			}
			since := func(at time.Time) time.Duration { return at.Sub(recorded.Transitions[0].Time) }
			if flip > 0 {
				all = append(all, max(since(shown), since(listed)))
			} else {
				b.ReportMetric(float64(since(shown).Microseconds())/1000, "first-ms")
				b.ReportMetric(float64(since(listed).Microseconds())/1000, "first-listed-ms")
			}
			w.Set(endpoint, false) // the page has room for a few at the top of its list
			c.AwaitHealth(name, address, "HEALTHY")
		}
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(all[len(all)-1].Microseconds())/1000, "max-ms")
		b.ReportMetric((c.Metric("process_cpu_seconds_total")-busy)/time.Since(began).Seconds(), "core")
		b.ReportMetric(0, "ns/op")
	}
}

// flap has an endpoint change again and again.
func flap(ctx context.Context, w *scale.World) {
	often := time.NewTicker(500 * time.Millisecond)
	defer often.Stop()
	for failing := true; ; failing = !failing {
		select {
		case <-often.C:
			w.Set(0, failing)
		case <-ctx.Done():
			return
		}
	}
}

// look asks what the overview asks: when a cluster changes, and every 3 s.
func look(ctx context.Context, server string) {
	ask := func(path string) *http.Response {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server+path, nil)
		if err != nil {
			panic(err)
		}
		r.Header.Set("Accept-Encoding", "gzip")
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return nil // the benchmark is over
		}
		return answer
	}
	changed := make(chan struct{}, 1)
	watch := ask("/v1/watch?by=cluster")
	if watch == nil {
		return
	}
	defer watch.Body.Close()
	go func() {
		defer close(changed)
		for lines := bufio.NewScanner(watch.Body); lines.Scan(); {
			if lines.Text() == "event: clusters" {
				select {
				case changed <- struct{}{}:
				default:
				}
			}
		}
	}()
	often := time.NewTicker(3 * time.Second)
	defer often.Stop()
	for {
		paths := []string{"/v1/status", "/v1/overview", "/v1/transitions?newestFirst=true&pageSize=30", "/v1/incidents?open=true&pageSize=200&allowPartial=true"}
		select {
		case _, open := <-changed:
			if !open {
				return
			}
		case <-often.C:
			paths = append(paths, "/v1/clusters?pageSize=10000")
		}
		for _, path := range paths {
			if answer := ask(path); answer != nil {
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
		}
	}
}
