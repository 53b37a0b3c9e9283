package union

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"hdsd/api"
)

// filled is an answer or a question with a value in each field.
func filled(f *testing.F, message any) []byte {
	f.Helper()
	v, number := reflect.New(reflect.TypeOf(message)), 0
	fill(f, "", v.Elem(), false, &number)
	text, err := json.Marshal(v.Interface())
	if err != nil {
		f.Fatal(err)
	}
	return text
}

// FuzzQuestion has a replica answer any bytes: it answers in JSON or with an error.
func FuzzQuestion(f *testing.F) {
	for _, kind := range []string{kindEndpoints, kindClusters, kindCheckers, kindPaths, kindClients, kindStatus, kindOverview, kindReplica} {
		f.Add([]byte(`{"Kind":"` + kind + `","Visible":{"Globs":["web"]},"Endpoints":{"Limit":-1},"Clusters":{"Limit":1},"Limit":-1}`))
	}
	f.Add(filled(f, question{}))
	f.Fuzz(func(t *testing.T, text []byte) {
		n := newNetwork()
		n.own["a"].clusters = []api.Cluster{{Name: "web"}}
		if found, err := n.replicas["a"].Answer(t.Context(), text); err == nil && !json.Valid(found) {
			t.Errorf("%q is answered %q", text, found)
		}
	})
}

// told gives any bytes as answers.
type told struct {
	end
	text []byte
}

func (p told) Ask(context.Context, string, []byte) ([]byte, error) { return p.text, nil }

// FuzzAnswer shows any bytes of other replicas to clients: the service has an answer in JSON.
func FuzzAnswer(f *testing.F) {
	for _, message := range messages {
		f.Add([]byte(`{"Value":` + string(filled(f, message)) + `}`))
	}
	f.Add([]byte(`{"Failure":{"Reason":"UNKNOWN_CLUSTER","Message":"x"}}`))
	f.Add([]byte(`{"Failure":{"Message":"x","Status":"CAU="}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		n := newNetwork()
		handler, err := api.NewService(New("b", n.own["b"], told{end{n, "b"}, text})).Handler()
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"endpoints", "clusters", "checkers", "paths", "clients", "status", "overview", "replicas"} {
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/v1/"+path, nil))
			if !json.Valid(answer.Body.Bytes()) {
				t.Errorf("%s: %d %q", path, answer.Code, answer.Body)
			}
		}
	})
}
