package coordinator

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"hdsd/api"
	"hdsd/coordinator/query"
	"hdsd/store"
)

// pageWriter takes an answer, and keeps only its length.
type pageWriter struct {
	header http.Header
	length int
}

func (w *pageWriter) Header() http.Header { return w.header }
func (w *pageWriter) WriteHeader(int)     {}
func (w *pageWriter) Write(text []byte) (int, error) {
	w.length += len(text)
	return len(text), nil
}

// BenchmarkPage queries 10,000 endpoints with three votes each, up to the bytes for the socket.
func BenchmarkPage(b *testing.B) {
	l := votedLab(b, askedClusters)
	history, err := store.Open(b.Context(), b.TempDir(), store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer history.Close()
	handler, err := api.NewService(query.New(query.Options{Core: l, Store: history})).Handler()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		w := &pageWriter{header: http.Header{}}
		handler.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/v1/endpoints?pageSize=10000", nil))
		if w.length < 1_000_000 {
			b.Fatalf("%d bytes", w.length)
		}
		b.ReportMetric(float64(w.length)/1e6, "MB/answer")
	}
}
