package api

import (
	"net/http"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/rest"
)

// withDocument serves the OpenAPI document, and passes everything else to next.
func withDocument(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, text := "", []byte(nil)
		switch r.URL.Path {
		case "/v1/openapi.json":
			kind, text = "application/json", hdsdv1.OpenAPIJSON
		case "/v1/openapi.yaml":
			kind, text = "application/yaml", hdsdv1.OpenAPIYAML
		default:
			next.ServeHTTP(w, r)
			return
		}
		if r.Method != http.MethodGet {
			rest.WriteError(w, rest.MethodError(w, r, http.MethodGet))
			return
		}
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(text) // an error means that the client has gone
	})
}
