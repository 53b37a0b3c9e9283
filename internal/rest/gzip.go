package rest

import (
	"net/http"
	"strconv"
	"strings"
)

// TakesGzip reports whether the client accepts a compressed answer.
func TakesGzip(r *http.Request) bool {
	for coding := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, parameter, _ := strings.Cut(coding, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		value, weighed := strings.CutPrefix(strings.ReplaceAll(strings.ToLower(parameter), " ", ""), "q=")
		weight, err := strconv.ParseFloat(value, 64)
		return !weighed || err == nil && weight > 0
	}
	return false
}
