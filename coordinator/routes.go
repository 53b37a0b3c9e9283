package coordinator

import (
	"net/http"
	"slices"

	"hdsd/internal/origin"
)

// routes is a mux that knows its patterns. A test checks that access has a role for each pattern.
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

// restrict passes on GET and HEAD requests for the exact path of a pattern. It answers all others with 404,
// including methods and spellings that a mux treats otherwise.
func (r *routes) restrict(next http.Handler) http.Handler {
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
