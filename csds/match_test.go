package csds

import (
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// request reads a request's matchers.
func request(t testing.TB, matchers string) *statusv3.ClientStatusRequest {
	t.Helper()
	r := &statusv3.ClientStatusRequest{}
	if err := protojson.Unmarshal([]byte(`{"node_matchers":[`+matchers+`]}`), r); err != nil {
		t.Fatal(err)
	}
	return r
}

// someNode has one value of each kind in its metadata.
func someNode(t testing.TB) *corev3.Node {
	t.Helper()
	metadata, err := structpb.NewStruct(map[string]any{
		"vpc": "Blue", "shard": 7.5, "canary": true, "none": nil, "tags": []any{"m", 3.0, []any{"deep"}},
		"a": map[string]any{"b": map[string]any{"c": "pro"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &corev3.Node{Id: "sidecar~10.0.0.1~Web.é", Metadata: metadata}
}

// in returns a matcher of the value at a path.
func in(path, value string) string {
	var segments []string
	for key := range strings.SplitSeq(path, ".") {
		segments = append(segments, `{"key":"`+key+`"}`)
	}
	return `{"node_metadatas":[{"path":[` + strings.Join(segments, ",") + `],"value":` + value + `}]}`
}

func TestMatchersSelectNodes(t *testing.T) {
	for _, test := range []struct {
		name, matchers string
		want           bool
	}{
		{"none selects all", ``, true},
		{"an empty one selects all", `{}`, true},
		{"exact", `{"node_id":{"exact":"sidecar~10.0.0.1~Web.é"}}`, true},
		{"exact, another", `{"node_id":{"exact":"sidecar"}}`, false},
		{"exact, case", `{"node_id":{"exact":"SIDECAR~10.0.0.1~web.é"}}`, false},
		{"exact, case ignored", `{"node_id":{"exact":"SIDECAR~10.0.0.1~web.é","ignore_case":true}}`, true},
		{"only ASCII case is ignored", `{"node_id":{"exact":"sidecar~10.0.0.1~Web.É","ignore_case":true}}`, false},
		{"exact, empty", `{"node_id":{"exact":""}}`, false},
		{"prefix", `{"node_id":{"prefix":"sidecar~"}}`, true},
		{"prefix, elsewhere", `{"node_id":{"prefix":"10.0"}}`, false},
		{"prefix, case ignored", `{"node_id":{"prefix":"SIDE","ignore_case":true}}`, true},
		{"suffix", `{"node_id":{"suffix":"Web.é"}}`, true},
		{"suffix, elsewhere", `{"node_id":{"suffix":"side"}}`, false},
		{"suffix, case ignored", `{"node_id":{"suffix":"wEB.é","ignore_case":true}}`, true},
		{"contains", `{"node_id":{"contains":"10.0.0.1"}}`, true},
		{"contains, case", `{"node_id":{"contains":"web"}}`, false},
		{"contains, case ignored", `{"node_id":{"contains":"wEb","ignore_case":true}}`, true},
		{"regex", `{"node_id":{"safe_regex":{"regex":"sidecar~[0-9.]+~.*"}}}`, true},
		{"regex with an engine", `{"node_id":{"safe_regex":{"google_re2":{},"regex":"side.*"}}}`, true},
		{"regex, the whole id", `{"node_id":{"safe_regex":{"regex":"sidecar"}}}`, false},
		{"regex, each alternative whole", `{"node_id":{"safe_regex":{"regex":"side|.*"}}}`, true},
		{"regex, case is its own", `{"node_id":{"safe_regex":{"regex":"SIDE.*"},"ignore_case":true}}`, false},
		{"regex, case by flag", `{"node_id":{"safe_regex":{"regex":"(?i)SIDE.*"}}}`, true},

		{"one of several", `{"node_id":{"exact":"x"}},{"node_id":{"prefix":"side"}}`, true},
		{"none of several", `{"node_id":{"exact":"x"}},{"node_id":{"exact":"y"}}`, false},
		{"all within one", `{"node_id":{"prefix":"side"},"node_metadatas":[{"path":[{"key":"canary"}],"value":{"bool_match":true}},{"path":[{"key":"vpc"}],"value":{"string_match":{"exact":"Blue"}}}]}`, true},
		{"id but not metadata", `{"node_id":{"prefix":"side"},"node_metadatas":[{"path":[{"key":"canary"}],"value":{"bool_match":false}}]}`, false},
		{"metadata but not id", `{"node_id":{"exact":"x"},"node_metadatas":[{"path":[{"key":"canary"}],"value":{"bool_match":true}}]}`, false},

		{"deep", in("a.b.c", `{"string_match":{"prefix":"pr"}}`), true},
		{"too deep", in("a.b.c.d", `{"string_match":{"prefix":"pr"}}`), false},
		{"a structure is no text", in("a.b", `{"string_match":{"prefix":"pr"}}`), false},
		{"through a text", in("vpc.b", `{"present_match":true}`), false},
		{"text, case ignored", in("vpc", `{"string_match":{"exact":"bLUE","ignore_case":true}}`), true},
		{"a number is no text", in("shard", `{"string_match":{"exact":"7.5"}}`), false},
		{"null", in("none", `{"null_match":{}}`), true},
		{"absent is not null", in("gone", `{"null_match":{}}`), false},
		{"text is not null", in("vpc", `{"null_match":{}}`), false},
		{"number", in("shard", `{"double_match":{"exact":7.5}}`), true},
		{"another number", in("shard", `{"double_match":{"exact":7}}`), false},
		{"in range", in("shard", `{"double_match":{"range":{"start":7.5,"end":8}}}`), true},
		{"the end is not in the range", in("shard", `{"double_match":{"range":{"start":7,"end":7.5}}}`), false},
		{"a text is no number", in("vpc", `{"double_match":{"range":{"start":-1,"end":1}}}`), false},
		{"bool", in("canary", `{"bool_match":true}`), true},
		{"absent is not false", in("gone", `{"bool_match":false}`), false},
		{"present", in("vpc", `{"present_match":true}`), true},
		{"null is present", in("none", `{"present_match":true}`), true},
		{"not present", in("gone", `{"present_match":false}`), true},
		{"present though it shall not be", in("vpc", `{"present_match":false}`), false},
		{"absent though it shall not be", in("gone", `{"present_match":true}`), false},
		{"a list is not primitive", in("tags", `{"present_match":true}`), false},
		{"nor absent", in("tags", `{"present_match":false}`), false},
		{"a structure is not primitive", in("a", `{"present_match":true}`), false},
		{"list", in("tags", `{"list_match":{"one_of":{"string_match":{"exact":"m"}}}}`), true},
		{"list, second", in("tags", `{"list_match":{"one_of":{"double_match":{"exact":3}}}}`), true},
		{"list in a list", in("tags", `{"list_match":{"one_of":{"list_match":{"one_of":{"string_match":{"exact":"deep"}}}}}}`), true},
		{"list, none", in("tags", `{"list_match":{"one_of":{"string_match":{"exact":"x"}}}}`), false},
		{"a text is no list", in("vpc", `{"list_match":{"one_of":{"string_match":{"exact":"Blue"}}}}`), false},
		{"either", in("vpc", `{"or_match":{"value_matchers":[{"null_match":{}},{"string_match":{"exact":"Blue"}}]}}`), true},
		{"neither", in("vpc", `{"or_match":{"value_matchers":[{"null_match":{}},{"bool_match":true}]}}`), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			match, err := compile(request(t, test.matchers).GetNodeMatchers())
			if err != nil {
				t.Fatal(err)
			}
			if got := match.matches(someNode(t)); got != test.want {
				t.Errorf("matches: %v, want %v", got, test.want)
			}
		})
	}
}

func TestANodeWithoutAnythingIsMatched(t *testing.T) {
	for matchers, want := range map[string]bool{
		``: true, `{"node_id":{"exact":""}}`: true, `{"node_id":{"prefix":"a"}}`: false,
		in("a.b", `{"present_match":false}`): true, in("a.b", `{"null_match":{}}`): false,
	} {
		match, err := compile(request(t, matchers).GetNodeMatchers())
		if err != nil {
			t.Fatal(err)
		}
		if got := match.matches(nil); got != want {
			t.Errorf("%s: %v, want %v", matchers, got, want)
		}
	}
}

func TestBadMatchersAreNamed(t *testing.T) {
	nested := `{"null_match":{}}`
	for range maxMatcherDepth {
		nested = `{"list_match":{"one_of":` + nested + `}}`
	}
	id := func(text string) string { return `{"node_id":` + text + `}` }
	for _, test := range []struct{ matchers, want string }{
		{`{},` + id(`{}`), "node_matchers[1].node_id: needs one of exact"},
		{id(`{"prefix":""}`), "node_matchers[0].node_id.prefix: must not be empty"},
		{id(`{"suffix":"","ignore_case":true}`), ".node_id.suffix: must not be empty"},
		{id(`{"contains":""}`), ".node_id.contains: must not be empty"},
		{id(`{"custom":{"name":"x"}}`), ".node_id.custom: is not supported"},
		{id(`{"safe_regex":{}}`), ".safe_regex.regex: must not be empty"},
		{id(`{"safe_regex":{"regex":"a("}}`), ".safe_regex.regex: is not valid RE2"},
		{id(`{"safe_regex":{"regex":"a)|(b"}}`), "is not valid RE2"},
		{id(`{"safe_regex":{"regex":"(?=a)"}}`), "is not valid RE2"},
		{id(`{"safe_regex":{"regex":"` + strings.Repeat("a", maxRegexBytes+1) + `"}}`), "may have up to 1024 bytes"},
		{id(`{"safe_regex":{"regex":"(abc){500}"}}`), "is too complex"},
		{id(`{"safe_regex":{"regex":"(((((((((a{9}){9}){9})))))))"}}`), "is too complex"},
		{id(`{"safe_regex":{"google_re2":{"max_program_size":5},"regex":"abcdef"}}`), "and may have 5"},
		{strings.Repeat(id(`{"safe_regex":{"regex":"(ab){150}"}}`)+",", 9) + `{}`, "the expressions of a request are too complex"},
		{strings.Repeat(`{},`, maxMatchers) + `{}`, "node_matchers[1024]: a request may have up to 1024 matchers"},
		{`{"node_metadatas":[{"value":{"null_match":{}}}]}`, ".node_metadatas[0].path: needs a segment"},
		{`{"node_metadatas":[{"path":[{}],"value":{"null_match":{}}}]}`, ".path[0]: needs a key"},
		{`{"node_metadatas":[{"path":[{"key":"a"}]}]}`, ".node_metadatas[0].value: is missing"},
		{in(strings.Repeat("a.", maxMatcherPath)+"a", `{"null_match":{}}`), ".path: may have up to 64 segments"},
		{in("a", `{}`), ".value: needs one of null_match"},
		{in("a", `{"double_match":{}}`), ".value.double_match: needs range or exact"},
		{in("a", `{"string_match":{}}`), ".value.string_match: needs one of exact"},
		{in("a", `{"list_match":{}}`), ".value.list_match: needs one_of"},
		{in("a", `{"list_match":{"one_of":{"string_match":{"safe_regex":{"regex":"["}}}}}`), ".value.list_match.one_of.string_match.safe_regex.regex: is not"},
		{in("a", `{"or_match":{"value_matchers":[{"null_match":{}}]}}`), ".or_match.value_matchers: needs two or more"},
		{in("a", `{"or_match":{"value_matchers":[{"null_match":{}},{}]}}`), ".value_matchers[1]: needs one of"},
		{in("a", nested), "value matchers may be up to 16 deep"},
	} {
		_, err := compile(request(t, test.matchers).GetNodeMatchers())
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.100s:\n got %v\nwant %q", test.matchers, err, test.want)
		}
	}
}

func TestUsualRegexesAreAllowed(t *testing.T) {
	// Usual expressions stay far from the limit.
	for _, regex := range []string{`[a-z0-9-]{1,63}(\\.[a-z0-9-]{1,63}){0,3}`, `(?i)(web|api|db)-[0-9]{1,4}-.*`, `\\p{L}+`} {
		if _, err := compile(request(t, `{"node_id":{"safe_regex":{"regex":"`+regex+`"}}}`).GetNodeMatchers()); err != nil {
			t.Errorf("%s: %v", regex, err)
		}
	}
}
