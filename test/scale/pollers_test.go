package scale

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// pollPause is how long a poller waits between an answer and its next question.
const pollPause = 250 * time.Millisecond

// pollers ask one question each, again and again, and note how long each answer takes.
type pollers struct {
	stop    chan struct{}
	running sync.WaitGroup
	took    map[string]*delays // by path; read after leave
}

// poll starts a poller for each path, until leave.
func (s *simulation) poll(paths ...string) *pollers {
	p := &pollers{stop: make(chan struct{}), took: map[string]*delays{}}
	for _, path := range paths {
		took := &delays{}
		p.took[path] = took
		p.running.Go(func() {
			due := time.NewTimer(0)
			defer due.Stop()
			for {
				select {
				case <-p.stop:
					return
				case <-due.C:
				}
				began := time.Now()
				if err := readAnswer("http://" + s.HTTP + path); err != nil {
					s.t.Errorf("%s: %v", path, err)
					return
				}
				*took = append(*took, time.Since(began))
				due.Reset(pollPause)
			}
		})
	}
	return p
}

// readAnswer reads an answer to its end.
func readAnswer(url string) error {
	response, err := http.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// leave ends the pollers, and reports how long their answers took.
func (p *pollers) leave(b *testing.B) {
	close(p.stop)
	p.running.Wait()
	for path, took := range p.took {
		name := path[strings.LastIndex(path, "/")+1:]
		slices.Sort(*took)
		b.ReportMetric(took.at(0.5).Seconds()*1000, "ms-"+name+"-median")
		b.ReportMetric(took.at(0.99).Seconds()*1000, "ms-"+name+"-p99")
		b.ReportMetric(took.at(1).Seconds()*1000, "ms-"+name+"-longest")
		b.ReportMetric(float64(len(*took)), name+"-answers")
	}
}
