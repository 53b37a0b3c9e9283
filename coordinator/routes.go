package coordinator

import (
	"net/http"
	"slices"

	"hdsd/internal/origin"
)

// routes is a mux that knows its patterns: a test holds that access has a role for
// each.
type routes struct {
	*http.ServeMux
	patterns []string
}

// Handle registers a handler for a pattern.
func (r *routes) Handle(pattern string, handler http.Handler) {
	r.patterns = append(r.patterns, pattern)
	r.ServeMux.Handle(pattern, handler)
}

// HandleFunc registers a function for a pattern.
func (r *routes) HandleFunc(pattern string, handle func(http.ResponseWriter, *http.Request)) {
	r.Handle(pattern, http.HandlerFunc(handle))
}

// only passes on what a pattern names: GET or HEAD of exactly its path. It answers 404 to all
// else, whatever a mux would say of other methods and spellings.
func (r *routes) only(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		reads := request.Method == http.MethodGet || request.Method == http.MethodHead
		if !reads || !slices.Contains(r.patterns, "GET "+request.URL.Path) {
			origin.SetHeaders(w.Header())
			http.NotFound(w, request)
			return
		}
		next.ServeHTTP(w, request)
	})
}
