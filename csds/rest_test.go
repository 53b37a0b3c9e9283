package csds

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/test/stall"
)

var update = flag.Bool("update", false, "write what comes out to testdata")

// ask sends a request to the REST handler.
func ask(t testing.TB, o Options, source Source, method, query, body string) (code int, text string) {
	t.Helper()
	w := httptest.NewRecorder()
	NewServer(o, source).Handler().ServeHTTP(w, httptest.NewRequest(method, "/v3/discovery:client_status"+query, strings.NewReader(body)))
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("content type %q", got)
	}
	return w.Code, w.Body.String()
}

func TestGoldenResponses(t *testing.T) {
	for name, body := range map[string]string{
		"all": ``, "excluded": `{"excludeResourceContents":true,"node":{"id":"me"}}`,
		"one": `{"node_matchers":[{"node_id":{"exact":"checker-1"}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			code, text := ask(t, Options{}, fleet(t), http.MethodPost, "", body)
			if code != http.StatusOK {
				t.Fatalf("%d: %s", code, text)
			}
			// protojson varies its spaces deliberately.
			var got bytes.Buffer
			if err := json.Indent(&got, []byte(compact(t, text)), "", "  "); err != nil {
				t.Fatal(err)
			}
			got.WriteByte('\n')
			path := "testdata/" + name + ".json"
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("got\n%s\nwant, as in %s (-update writes it)\n%s", got.Bytes(), path, want)
			}
		})
	}
}

func compact(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return b.String()
}

func TestRESTIsReadAsTheMessageItIs(t *testing.T) {
	_, text := ask(t, Options{}, fleet(t), http.MethodGet, "", "")
	got := &statusv3.ClientStatusResponse{}
	if err := protojson.Unmarshal([]byte(text), got); err != nil {
		t.Fatal(err)
	}
	want, err := NewServer(Options{}, fleet(t)).FetchClientStatus(t.Context(), &statusv3.ClientStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	// Bodies may be encoded in another order: compare as text.
	if g, w := protojson.Format(got), protojson.Format(want); compact(t, g) != compact(t, w) {
		t.Errorf("by REST\n%s\nby gRPC\n%s", g, w)
	}
}

func TestRESTRequests(t *testing.T) {
	long := `{"node":{"id":"` + strings.Repeat("x", maxRequest) + `"}}`
	for _, test := range []struct {
		method, query, body string
		code                int
		want                string
	}{
		{"GET", "?node_id=quiet", "", 200, `"clientScope":"quiet/EDS"`},
		{"GET", "?nodeId=nobody", "", 200, `{"config":[]}`},
		{"GET", "?" + url.Values{"node_id": {"nobody", "checker-1"}}.Encode(), "", 200, `"interval":"1s"`},
		{"GET", "?exclude_resource_contents=maybe", "", 400, `{"code":3,"message":"exclude_resource_contents: is \"maybe\", use true or false","details":[`},
		{"GET", "?node=quiet", "", 400, `the query parameter \"node\" is not known`},
		{"POST", "", `{"nodeMatchers":[{"nodeId":{"prefix":"qui"}}]}`, 200, `"clientScope":"quiet/EDS"`},
		{"POST", "", `{"node_matcher":[]}`, 400, `no envoy.service.status.v3.ClientStatusRequest in proto3 JSON`},
		{"POST", "", `{`, 400, `"code":3`},
		{"POST", "", "{\"node\":{\"id\":\"\xff\"}}", 400, `"code":3`},
		{"POST", "", `{"node_matchers":[{"node_id":{"safe_regex":{"regex":"["}}}]}`, 400, `node_matchers[0].node_id.safe_regex.regex: is not valid RE2`},
		{"POST", "", long, 413, `up to 1048576 bytes`},
		{"PUT", "", ``, 405, `"code":12`},
	} {
		code, text := ask(t, Options{}, fleet(t), test.method, test.query, test.body)
		if text = compact(t, text); code != test.code || !strings.Contains(text, test.want) {
			t.Errorf("%s %s %.80s: %d %.300s\nwant %d with %s", test.method, test.query, test.body, code, text, test.code, test.want)
		}
	}
	if code, text := ask(t, Options{MaxBytes: 10}, fleet(t), "GET", "", ""); code != http.StatusTooManyRequests || !strings.Contains(text, `"code":8`) {
		t.Errorf("too large: %d %s", code, text)
	}
}

func TestQueryLeavesContentsOut(t *testing.T) {
	_, text := ask(t, Options{}, fleet(t), "GET", "?exclude_resource_contents=true", "")
	if strings.Contains(text, "@type") || !strings.Contains(text, "no such policy") {
		t.Error(text)
	}
}

func TestJSONLeavesOutWhatItCannotExpress(t *testing.T) {
	nan := &structpb.Struct{Fields: map[string]*structpb.Value{"x": structpb.NewNumberValue(math.NaN())}}
	foreign := &anypb.Any{TypeUrl: "type.googleapis.com/acme.Secret", Value: []byte("\x0a\x03abc")}
	cluster := &clusterv3.Cluster{Name: "odd", TypedExtensionProtocolOptions: map[string]*anypb.Any{"acme": foreign}}
	unwritable := &clusterv3.Cluster{Name: "unwritable", Metadata: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"a": nan}}}
	source := fixed{
		{Node: &corev3.Node{Id: "nan", Metadata: nan}, Resources: resources(
			Resource{TypeURL: resourcev3.ClusterType, Name: "odd", Body: body(t, cluster)},
			Resource{TypeURL: resourcev3.ClusterType, Name: "unwritable", Body: body(t, unwritable), Error: &Error{Details: "why", Body: body(t, unwritable)}},
			Resource{TypeURL: resourcev3.ClusterType, Name: "broken", Body: func() *anypb.Any { return &anypb.Any{TypeUrl: resourcev3.ClusterType, Value: []byte{0xff}} }},
		)},
	}
	code, text := ask(t, Options{}, source, "GET", "", "")
	if code != 200 {
		t.Fatal(code)
	}
	text = compact(t, text)
	for _, want := range []string{
		`"node":{"id":"nan"}`, `"name":"broken"`, `"details":"why"`,
		`"acme":{"@type":"type.googleapis.com/acme.Secret"}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}

func TestAReaderThatGoesAwayIsIgnored(t *testing.T) {
	response, err := NewServer(Options{}, fleet(t)).FetchClientStatus(t.Context(), &statusv3.ClientStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for room := range 3 {
		w := &gone{room: room}
		writeResponse(w, response)
		if w.writes != room+1 {
			t.Errorf("written %d times, the reader went away after %d", w.writes, room)
		}
	}
}

// gone is a writer that fails after some writes.
type gone struct{ room, writes int }

func (g *gone) Write(b []byte) (int, error) {
	if g.writes++; g.writes > g.room {
		return 0, io.ErrClosedPipe
	}
	return len(b), nil
}

func TestSlowRESTClientsTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewServer(Options{}, fleet(t)).Handler()
		borne, answer := stall.SlowBody(t, h, Path)
		if borne > 11*time.Second || !strings.HasPrefix(answer, "HTTP/1.1 400") {
			t.Errorf("a body a byte a second: borne for %v, told %q", borne, answer)
		}
		if borne := stall.UnreadAnswer(t, h, Path, "{}"); borne > 2*time.Minute {
			t.Errorf("an answer that is not read: borne for %v", borne)
		}
	})
}

// FuzzClientStatusRequest takes the bytes of a request. There is a response or an error,
// the same in gRPC and REST, and an accepted request is valid by the protos' own rules.
func FuzzClientStatusRequest(f *testing.F) {
	for _, matchers := range []string{
		``, `{"node_id":{"prefix":"side"}}`, `{"node_id":{"safe_regex":{"regex":"(a|b){2,30}[x-z]*"}}}`, `{"node_id":{"custom":{}}}`,
		in("a.b.c", `{"or_match":{"value_matchers":[{"null_match":{}},{"list_match":{"one_of":{"double_match":{"range":{"end":3}}}}}]}}`),
		in("vpc", `{"string_match":{"suffix":"UE","ignore_case":true}}`), in("gone", `{"present_match":false}`),
	} {
		b, err := proto.Marshal(request(f, matchers))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	source := fleet(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &statusv3.ClientStatusRequest{}
		if proto.Unmarshal(data, r) != nil {
			return
		}
		got, err := NewServer(Options{}, source).FetchClientStatus(t.Context(), r)
		if err == nil {
			for _, m := range r.GetNodeMatchers() {
				if invalid := m.Validate(); invalid != nil {
					t.Errorf("accepted, though invalid: %v", invalid)
				}
			}
			if _, err := proto.Marshal(got); err != nil {
				t.Errorf("the response cannot be encoded: %v", err)
			}
		}
		for _, m := range r.GetNodeMatchers() {
			if checkKnown(m.ProtoReflect()) != nil {
				return // JSON has no place for it
			}
		}
		text, notJSON := protojson.Marshal(r)
		if notJSON != nil || len(text) > maxRequest {
			return
		}
		code, answer := ask(t, Options{}, source, http.MethodPost, "", string(text))
		if (err == nil) != (code == http.StatusOK) || !json.Valid([]byte(answer)) {
			t.Errorf("gRPC gives %v, REST %d %s", err, code, answer)
		}
	})
}
