package origin

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/grpc/status"
)

func TestCheck(t *testing.T) {
	hosts := Hosts{"hdsd.example.com", "*.corp.example"}
	for name, c := range map[string]struct {
		method, host, origin, site, kind, body string
		secure                                 bool
		want                                   int // 200: passes
	}{
		"an address":                             {host: "127.0.0.1:18080", want: 200},
		"an address without a port":              {host: "10.1.2.3", want: 200},
		"an IPv6 address":                        {host: "[2001:db8::1]:18080", want: 200},
		"an IPv6 address without a port":         {host: "[::1]", want: 200},
		"localhost":                              {host: "LocalHost:18080", want: 200},
		"a name without a dot":                   {host: "hdsd_rest", want: 200},
		"HTTP/1.0 without a host":                {host: "", want: 200},
		"a name that is allowed":                 {host: "HDSD.example.com:80", want: 200},
		"one that ends with a dot":               {host: "hdsd.example.com.", want: 200},
		"one by a pattern":                       {host: "a.b.corp.example:18080", want: 200},
		"the pattern's parent":                   {host: "corp.example", want: 421},
		"another that ends so":                   {host: "evilcorp.example", want: 421},
		"another name":                           {host: "evil.example:18080", want: 421},
		"a name with a dot at its end only":      {host: "com.", want: 421},
		"a name that begins as an address":       {host: "127.0.0.1.evil.example:18080", want: 421},
		"another name, for a change":             {method: "DELETE", host: "evil.example", want: 421},
		"another name under TLS":                 {host: "other.example", secure: true, want: 200},
		"the own page":                           {host: "127.0.0.1:18080", origin: "http://127.0.0.1:18080", want: 200},
		"the own page at the usual port":         {host: "localhost", origin: "http://localhost:80", want: 200},
		"the own page under TLS":                 {host: "other.example", origin: "https://other.example", secure: true, want: 200},
		"the own name, another port":             {host: "127.0.0.1:18080", origin: "http://127.0.0.1:8000", want: 403},
		"the own name, another scheme":           {host: "127.0.0.1:18080", origin: "https://127.0.0.1:18080", want: 403},
		"a page of another site that reads":      {host: "127.0.0.1:18080", origin: "http://evil.example", want: 403},
		"a page in a frame without rights":       {host: "127.0.0.1:18080", origin: "null", want: 403},
		"a page from a file":                     {host: "127.0.0.1:18080", origin: "file://", want: 403},
		"another site under TLS":                 {host: "hdsd", origin: "https://evil.example", secure: true, want: 403},
		"a page that is allowed":                 {host: "10.1.2.3:18080", origin: "https://dash.corp.example:3000", want: 200},
		"a change that a browser calls foreign":  {method: "DELETE", host: "127.0.0.1:18080", site: "cross-site", want: 403},
		"one of another port":                    {method: "POST", host: "127.0.0.1:18080", site: "same-site", kind: "application/json", want: 403},
		"one of the own page":                    {method: "DELETE", host: "127.0.0.1:18080", site: "same-origin", want: 200},
		"a link from another site":               {host: "127.0.0.1:18080", site: "cross-site", want: 200},
		"a message":                              {method: "POST", host: "10.1.2.3", kind: "application/json", body: "{}", want: 200},
		"a message with its encoding":            {method: "POST", host: "10.1.2.3", kind: "application/json; charset=UTF-8", body: "{}", want: 200},
		"text":                                   {method: "POST", host: "10.1.2.3", kind: "text/plain", body: "{}", want: 415},
		"text that mentions JSON":                {method: "POST", host: "10.1.2.3", kind: "text/plain; a=application/json", body: "{}", want: 415},
		"a form":                                 {method: "POST", host: "10.1.2.3", kind: "application/x-www-form-urlencoded", body: "{}", want: 415},
		"something of no type":                   {method: "POST", host: "10.1.2.3", body: "{}", want: 415},
		"nothing of no type":                     {method: "POST", host: "10.1.2.3", want: 415},
		"a removal without a body":               {method: "DELETE", host: "10.1.2.3", want: 200},
		"a removal by text":                      {method: "DELETE", host: "10.1.2.3", kind: "text/plain", body: "{}", want: 415},
		"text from another site by a wrong name": {method: "POST", host: "evil.example", origin: "http://evil.example", kind: "text/plain", body: "{}", want: 421},
	} {
		method := c.method
		if method == "" {
			method = http.MethodGet
		}
		for _, path := range []string{"/", "/metrics", "/v1/freeze", "/v3/discovery:health_check"} {
			r := httptest.NewRequest(method, path, strings.NewReader(c.body))
			r.Host = c.host
			if c.origin != "" {
				r.Header.Set("Origin", c.origin)
			}
			if c.site != "" {
				r.Header.Set("Sec-Fetch-Site", c.site)
			}
			if c.kind != "" {
				r.Header.Set("Content-Type", c.kind)
			}
			if c.secure {
				r.TLS = &tls.ConnectionState{}
			}
			if got := statusOf(hosts.Check(r)); got != c.want {
				t.Errorf("%s at %s: %d, want %d", name, path, got, c.want)
			}
		}
	}
}

// statusOf is what a client is told.
func statusOf(err error) int {
	if err == nil {
		return http.StatusOK
	}
	for code, word := range map[int]string{421: "as its own", 403: "page", 415: "Content-Type"} {
		if strings.Contains(status.Convert(err).Message(), word) {
			return code
		}
	}
	return 0
}

// TestARefusalNamesItsSetting and shows nothing that moves a cursor.
func TestARefusalNamesItsSetting(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Host = "evil\x1b[2J.example"
	err := Hosts(nil).Check(r)
	if err == nil || !strings.Contains(err.Error(), "http.allowed_hosts") || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%q", err)
	}
	r.Host = "hdsd"
	r.Header.Add("Origin", "http://hdsd")
	r.Header.Add("Origin", "http://evil.example")
	if err = Hosts(nil).Check(r); err == nil || !strings.Contains(err.Error(), "http.allowed_hosts") {
		t.Errorf("a second Origin: %v", err)
	}
}

func FuzzOnlyKnownNamesPass(f *testing.F) {
	for _, host := range []string{"127.0.0.1:1", "evil.example", "[::1]", "a:b:c", "[x.y]", "*.corp.example", "x.corp.example.:1"} {
		f.Add(host)
	}
	f.Fuzz(func(t *testing.T, host string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		name := hostname(host)
		known := isOwn(name) || strings.HasSuffix(strings.TrimSuffix(name, "."), ".corp.example")
		if passes := (Hosts{"*.corp.example"}).Check(r) == nil; passes != known {
			t.Errorf("%q passes: %t", host, passes)
		}
	})
}
