package rest

import (
	"net/http"
	"testing"
)

// TestTheCheckIsStrict: it can fail.
func TestTheCheckIsStrict(t *testing.T) {
	d := Load(t)
	plain, events := http.Header{"Content-Type": {"application/json"}}, http.Header{"Content-Type": {"text/event-stream"}}
	const (
		good    = `{"clusters":[{"name":"web","source":"local","checked":true,"endpoints":1,"healthy":1,"unhealthy":0,"unknown":0,"quarantined":[],"mode":"PUBLISH","overridden":0,"noEndpointsReason":"","timeout":0,"degraded":0,"draining":0,"held":0,"healthChecks":[],"rejectedReason":"","panicReason":""}],"nextPageToken":""}`
		detail  = `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"INVALID_ARGUMENT","domain":"hdsd"}`
		refusal = `{"code":3,"message":"no","details":[` + detail + `]}`
	)
	for name, c := range map[string]struct {
		answer Answer
		right  bool
	}{
		"right":                {Answer{"GET", "/v1/clusters?pageSize=1&pageToken=", 200, plain, []byte(good)}, true},
		"a refusal":            {Answer{"GET", "/v1/clusters?x=1", 400, plain, []byte(refusal)}, true},
		"an event":             {Answer{"GET", "/v1/watch", 200, events, []byte("event: synced\nid: t\ndata: {}\n\n")}, true},
		"a field more":         {Answer{"GET", "/v1/checkers", 200, plain, []byte(`{"checkers":[],"nextPageToken":"","x":1}`)}, false},
		"a field less":         {Answer{"GET", "/v1/checkers", 200, plain, []byte(`{"checkers":[]}`)}, false},
		"another type":         {Answer{"GET", "/v1/checkers", 200, plain, []byte(`{"checkers":[],"nextPageToken":1}`)}, false},
		"a field more deep in": {Answer{"GET", "/v1/clusters", 200, plain, []byte(`{"clusters":[{"x":1}],"nextPageToken":""}`)}, false},
		"another parameter":    {Answer{"GET", "/v1/clusters?page_size=1", 200, plain, []byte(good)}, false},
		"a bad parameter":      {Answer{"GET", "/v1/clusters?pageSize=10001", 200, plain, []byte(good)}, false},
		"another status":       {Answer{"GET", "/v1/checkers", 404, plain, []byte(`{"code":5,"message":"no","details":[` + detail + `]}`)}, false},
		"the code of another":  {Answer{"GET", "/v1/clusters", 400, plain, []byte(`{"code":5,"message":"no","details":[` + detail + `]}`)}, false},
		"an error with more":   {Answer{"GET", "/v1/clusters", 400, plain, []byte(`{"code":3,"message":"no","x":1,"details":[` + detail + `]}`)}, false},
		"no reason":            {Answer{"GET", "/v1/clusters", 400, plain, []byte(`{"code":3,"message":"no","details":[]}`)}, false},
		"another path":         {Answer{"GET", "/v1/cluster", 200, plain, []byte(good)}, false},
		"another method":       {Answer{"POST", "/v1/clusters", 200, plain, []byte(good)}, false},
		"another content type": {Answer{"GET", "/v1/clusters", 200, events, []byte(good)}, false},
		"another header":       {Answer{"GET", "/v1/clusters", 200, http.Header{"Content-Type": {"application/json"}, "X-Hdsd-More": {"1"}}, []byte(good)}, false},
		"another event":        {Answer{"GET", "/v1/watch", 200, events, []byte("event: sync\nid: t\ndata: {}\n\n")}, false},
		"an event with more":   {Answer{"GET", "/v1/watch", 200, events, []byte("event: synced\nid: t\ndata: {\"x\":1}\n\n")}, false},
		"a time of another form": {Answer{"GET", "/v1/freeze", 200, plain,
			[]byte(`{"frozen":true,"reason":"x","author":"x","publish":"HELD","since":"yesterday"}`)}, false},
		"nothing new":              {Answer{"POST", "/v3/discovery:endpoints", 304, http.Header{}, nil}, true},
		"nothing new, with a body": {Answer{"POST", "/v3/discovery:endpoints", 304, plain, []byte("{}")}, false},
	} {
		if err := d.Check(&c.answer); (err == nil) != c.right {
			t.Errorf("%s: %v", name, err)
		}
	}
}
