package eds

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hdsd/health"
	"hdsd/publish"
)

// discarded is an answer whose body is dropped.
type discarded struct {
	header http.Header
	code   int
	size   int
}

func (d *discarded) Header() http.Header { return d.header }

func (d *discarded) WriteHeader(code int) { d.code = code }

func (d *discarded) Write(p []byte) (int, error) {
	d.size += len(p)
	return len(p), nil
}

// BenchmarkPoll answers polls by REST, without writing the answer. "first" makes the JSON
// of everything, "flip" that of one assignment.
func BenchmarkPoll(b *testing.B) {
	b.Run("assignment=100/unchanged", func(b *testing.B) { benchmarkPoll(b, 1, 100, EndpointsPath, true, nil) })
	b.Run("assignment=100/changed", func(b *testing.B) { benchmarkPoll(b, 1, 100, EndpointsPath, false, nil) })
	b.Run("clusters=1000/unchanged", func(b *testing.B) { benchmarkPoll(b, 1000, 1, ClustersPath, true, nil) })
	b.Run("clusters=1000/changed", func(b *testing.B) { benchmarkPoll(b, 1000, 1, ClustersPath, false, nil) })
	b.Run("assignments=10000x10/unchanged", func(b *testing.B) { benchmarkPoll(b, 10_000, 10, EndpointsPath, true, nil) })
	b.Run("assignments=10000x10/flip", func(b *testing.B) {
		benchmarkPoll(b, 10_000, 10, EndpointsPath, false, func(s *Server, n int) {
			s.setHealth(health.EndpointID(n%100_000), health.Status(1+n/100_000%2))
		})
	})
	b.Run("assignments=10000x10/first", func(b *testing.B) {
		benchmarkPoll(b, 10_000, 10, EndpointsPath, false, func(s *Server, _ int) {
			for _, slot := range s.published.find(s.published.assignments, nil, "").slots {
				slot.rendered = nil
			}
		})
	})
}

func benchmarkPoll(b *testing.B, names, endpoints int, path string, unchanged bool, before func(*Server, int)) {
	s := NewServer(Options{Identifier: "hdsd-1"})
	all := manyNames(names)
	u := publish.Update{Assignments: manyAssignments(all, endpoints)}
	for _, name := range all {
		u.Clusters = append(u.Clusters, publish.Cluster{Message: cluster(name, "")})
	}
	s.Update(u)
	handler, body, code := s.Handler(), `{"node":{"id":"dp-1"}}`, 0 // 0: what was not said
	if unchanged {
		f, err := s.fetcher.fetch(context.Background(), map[string]*table{EndpointsPath: s.published.assignments, ClustersPath: s.published.clusters}[path], want(""))
		if err != nil {
			b.Fatal(err)
		}
		body, code = `{"node":{"id":"dp-1"},"version_info":"`+f.version+`"}`, http.StatusNotModified
	}
	reader := strings.NewReader(body)
	request := httptest.NewRequest(http.MethodPost, path, nil)
	ask := func() (size int) {
		reader.Reset(body)
		request.Body = io.NopCloser(reader)
		answer := discarded{header: http.Header{}}
		handler.ServeHTTP(&answer, request)
		if answer.code != code {
			b.Fatalf("status %d", answer.code)
		}
		return answer.size
	}
	size := ask()
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if before != nil {
			before(s, n)
		}
		size = ask()
	}
	b.ReportMetric(float64(size), "bytes")
}
