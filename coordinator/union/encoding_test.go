package union

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"hdsd/api"
)

var update = flag.Bool("update", false, "write the golden files")

// messages are what replicas send to each other.
var messages = map[string]any{
	"question": question{}, "answer": answer{}, "endpoints": rows[api.EndpointHealth]{}, "clusters": rows[cluster]{}, "checkers": []api.Checker{},
	"paths": []api.Path{}, "clients": []api.Client{}, "status": api.Status{}, "overview": api.Overview{}, "replica": api.Replica{}, "acceptance": api.Held{},
	"preview": api.Preview{}, "overrides": []api.Override{},
}

// fill sets each field below a value to one of its own, or with zero, each pointer to a zero value. It fails for what JSON
// would lose.
func fill(t testing.TB, path string, v reflect.Value, zero bool, number *int) {
	t.Helper()
	*number++
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		if !zero {
			v.Set(reflect.ValueOf(noon.Add(time.Duration(*number) * time.Nanosecond)))
		}
		return
	case reflect.TypeFor[any]():
		v.Set(reflect.ValueOf(map[string]any{}))
		return
	case reflect.TypeFor[[]*corev3.HealthCheck]():
		return // cluster hides it
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				t.Fatalf("%s.%s: JSON has no fields that are not exported", path, f.Name)
			}
			fill(t, path+"."+f.Name, v.Field(i), zero, number)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, path, v.Elem(), zero, number)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(t, path+"[]", v.Index(i), zero, number)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(t, path+"[]", v.Index(i), zero, number)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, path+"{}", key, false, number)
		fill(t, path+"{}", value, zero, number)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		if !zero {
			v.SetString(fmt.Sprintf("%d <é>\x00", *number))
		}
	case reflect.Bool:
		v.SetBool(!zero)
	case reflect.Int, reflect.Int64:
		if !zero {
			v.SetInt(-int64(*number) << 30)
		}
	case reflect.Uint8, reflect.Uint16:
		if !zero {
			v.SetUint(uint64(*number % 250))
		}
	case reflect.Uint64:
		if !zero {
			v.SetUint(-uint64(*number))
		}
	case reflect.Float64:
		if !zero {
			v.SetFloat(float64(*number) / 3)
		}
	default:
		t.Fatalf("%s: a %s has no form in JSON", path, v.Type())
	}
}

// TestMessagesKeepEverything: each field of each message arrives as it was sent, zeros behind pointers, times and absent parts too.
func TestMessagesKeepEverything(t *testing.T) {
	for name, empty := range messages {
		for _, kind := range []string{"absent", "zero", "filled"} {
			sent, number := reflect.New(reflect.TypeOf(empty)), 0
			if kind != "absent" {
				fill(t, name, sent.Elem(), kind == "zero", &number)
			}
			text, err := json.Marshal(sent.Interface())
			if err != nil {
				t.Fatal(err)
			}
			got := reflect.New(reflect.TypeOf(empty))
			if err := json.Unmarshal(text, got.Interface()); err != nil {
				t.Errorf("%s, %s: %v", name, kind, err)
			}
			if kind == "filled" && number < 5 {
				t.Errorf("%s has %d values only", name, number)
			}
			if !reflect.DeepEqual(got.Interface(), sent.Interface()) && !(name == "answer" && kind == "absent") {
				t.Errorf("%s, %s:\n%s", name, kind, cmp.Diff(sent.Interface(), got.Interface(), protocmp.Transform()))
			}
		}
	}
}

// TestNamesOfFieldsStay: another release reads them. A line of the golden file may come, but none may go or change.
func TestNamesOfFieldsStay(t *testing.T) {
	var lines []string
	for name, empty := range messages {
		filled, number := reflect.New(reflect.TypeOf(empty)), 0
		fill(t, name, filled.Elem(), false, &number)
		text, err := json.Marshal(filled.Interface())
		if err != nil {
			t.Fatal(err)
		}
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			t.Fatal(err)
		}
		lines = shape(lines, name, value)
	}
	slices.Sort(lines)
	got := strings.Join(slices.Compact(lines), "\n") + "\n"
	const path = "testdata/messages.txt"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if diff := cmp.Diff(string(want), got); err != nil || diff != "" {
		t.Errorf("%v; the fields of messages differ (-want +got); -update takes over lines that are new:\n%s", err, diff)
	}
}

// shape adds a line for each field of a value in JSON: its path and its form.
func shape(lines []string, path string, value any) []string {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			if strings.ContainsRune(name, ' ') { // of a map
				name = "{}"
			}
			lines = shape(lines, path+"."+name, field)
		}
		if len(value) > 0 {
			return lines
		}
	case []any:
		for _, item := range value {
			lines = shape(lines, path+"[]", item)
		}
		return lines
	}
	return append(lines, fmt.Sprintf("%s %T", path, value))
}

// TestHealthChecksTravelWithoutSecrets.
func TestHealthChecksTravelWithoutSecrets(t *testing.T) {
	check := &corev3.HealthCheck{
		HealthChecker: &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: &corev3.HealthCheck_HttpHealthCheck{Path: "/healthz", RequestHeadersToAdd: []*corev3.HeaderValueOption{
			{Header: &corev3.HeaderValue{Key: "authorization", Value: "hunter2"}},
		}}},
	}
	n := newNetwork()
	n.own["a"].clusters = []api.Cluster{{Name: "web", Version: "7", HealthChecks: []*corev3.HealthCheck{check}}, {Name: "plain"}}
	found, _, err := n.replicas["b"].Clusters(t.Context(), api.ClusterQuery{})
	if err != nil || len(found) != 2 || found[0].Name != "web" || found[0].Version != "7" || len(found[0].HealthChecks) != 1 || found[1].HealthChecks != nil {
		t.Fatalf("%+v, %v", found, err)
	}
	if got := found[0].HealthChecks[0]; got.GetHttpHealthCheck().GetPath() != "/healthz" || strings.Contains(got.String(), "hunter2") {
		t.Errorf("%v", got)
	}
	if check.GetHttpHealthCheck().GetRequestHeadersToAdd()[0].GetHeader().GetValue() != "hunter2" {
		t.Error("what is hidden is gone at its owner, too")
	}
}
