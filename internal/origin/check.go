package origin

import (
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"hdsd/internal/rest"
)

// Hosts are the accepted names of a server, beside those that no attacker can own.
// "*.example.com" stands for all names below example.com.
type Hosts []string

// sameSite has the values of Sec-Fetch-Site for requests that no page of another site made.
// Programs do not send the header.
var sameSite = []string{"", "same-origin", "none"}

// Check refuses a request that a page of another site made, or may have made.
//
//   - Without TLS, the Host header must be an IP address, localhost, a name without a
//     dot, or one of Hosts. No site on the internet has a name without a dot, and
//     Envoys that poll send the name of a cluster. With TLS, the browser has compared
//     the name with the certificate.
//   - The Origin header, if there is one, must be the server's own, or that of Hosts.
//   - Each POST, and what else has a body, must be JSON: a form cannot send that, nor can
//     a script of another site without asking first.
func (h Hosts) Check(r *http.Request) error {
	if name := hostname(r.Host); r.TLS == nil && !isOwn(name) && !h.contains(name) {
		return rest.Errorf(http.StatusMisdirectedRequest, codes.PermissionDenied,
			"hdsd does not know the host %.200q as its own: ask by IP address, or add the name to http.allowed_hosts", name)
	}
	for _, origin := range r.Header.Values("Origin") {
		if !isSame(origin, r) && !h.hasOrigin(origin) {
			return rest.Errorf(http.StatusForbidden, codes.PermissionDenied,
				"pages of %.200q may not use hdsd: if they should, add their host to http.allowed_hosts", origin)
		}
	}
	if r.Header.Get("Origin") == "" && r.Method != http.MethodGet && r.Method != http.MethodHead && !slices.Contains(sameSite, r.Header.Get("Sec-Fetch-Site")) {
		return rest.Errorf(http.StatusForbidden, codes.PermissionDenied, "a page of another site cannot change anything here")
	}
	if bringsContent(r) && !isJSON(r) {
		return rest.Errorf(http.StatusUnsupportedMediaType, codes.InvalidArgument,
			"%s needs the header Content-Type: application/json, not %.200q", r.Method, r.Header.Get("Content-Type"))
	}
	return nil
}

// SetHeaders tells a browser that answers must not run, appear inside another page, or be taken
// for another type. A handler that answers with a page replaces the Content-Security-Policy.
func SetHeaders(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// hostname returns the name in a Host header, without its port, in lower case. HTTP/1.0
// may have none.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

// isOwn reports whether no attacker can own a name.
func isOwn(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil || !strings.Contains(name, ".")
}

func (h Hosts) contains(name string) bool {
	name = strings.TrimSuffix(name, ".")
	for _, allowed := range h {
		allowed = strings.ToLower(allowed)
		if parent, isPattern := strings.CutPrefix(allowed, "*"); name == allowed || isPattern && strings.HasSuffix(name, parent) && len(name) > len(parent) {
			return true
		}
	}
	return false
}

func (h Hosts) hasOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && h.contains(hostname(u.Host))
}

// isSame reports whether a page of the server itself made a request.
func isSame(origin string, r *http.Request) bool {
	scheme, port := "http", ":80"
	if r.TLS != nil {
		scheme, port = "https", ":443"
	}
	host, ok := strings.CutPrefix(strings.ToLower(origin), scheme+"://")
	return ok && strings.TrimSuffix(host, port) == strings.TrimSuffix(strings.ToLower(r.Host), port)
}

func bringsContent(r *http.Request) bool {
	return r.Method == http.MethodPost || r.ContentLength != 0
}

func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}
