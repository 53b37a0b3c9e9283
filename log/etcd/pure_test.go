package etcd

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var k = keys{"/hdsd"}

func TestKeysSortAsSequences(t *testing.T) {
	var before string
	for _, sequence := range []uint64{0, 1, 9, 10, 4711, 1 << 32, 1<<64 - 1} {
		key := k.entry(sequence)
		if back, err := k.sequence(key); back != sequence || err != nil {
			t.Errorf("%s is %d, %v", key, back, err)
		}
		if string(key) <= before || string(key) < string(k.log()) || string(key) >= string(end(k.log())) {
			t.Errorf("%s comes after %s", key, before)
		}
		before = string(key)
	}
	for _, key := range []string{"/hdsd/log/1", "/hdsd/log/0000000000000000000x", "/hdse/log/00000000000000000001", "/hdsd/leader", ""} {
		if _, err := k.sequence([]byte(key)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v", key, err)
		}
	}
}

func TestEntriesAreOpaque(t *testing.T) {
	for _, payload := range []string{"", "x", strings.Repeat("\x00\xff", 1000)} {
		got, err := k.decode(k.entry(7), encode(1<<40, []byte(payload)))
		if err != nil || got.Sequence != 7 || got.Epoch != 1<<40 || string(got.Payload) != payload {
			t.Errorf("%q is %+v, %v", payload, got, err)
		}
	}
	if _, err := k.decode(k.entry(7), []byte("short")); !errors.Is(err, ErrDamaged) {
		t.Errorf("an entry without an epoch: %v", err)
	}
}

func TestOptions(t *testing.T) {
	good := Options{Endpoints: []string{"http://10.0.0.1:2379", "http://[::1]:2379"}, Prefix: "/hdsd/", ID: "a", TTL: 1500 * time.Millisecond}
	got, err := good.checked()
	if err != nil || got.Prefix != "/hdsd" || got.seconds() != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	for name, spoil := range map[string]func(*Options){
		"no endpoints":        func(o *Options) { o.Endpoints = nil },
		"no scheme":           func(o *Options) { o.Endpoints = []string{"10.0.0.1:2379"} },
		"no port":             func(o *Options) { o.Endpoints = []string{"http://10.0.0.1"} },
		"a path":              func(o *Options) { o.Endpoints = []string{"http://10.0.0.1:2379/x"} },
		"mixed schemes":       func(o *Options) { o.Endpoints = []string{"http://a:1", "https://b:1"} },
		"no prefix":           func(o *Options) { o.Prefix = "/" },
		"a relative prefix":   func(o *Options) { o.Prefix = "hdsd" },
		"no id":               func(o *Options) { o.ID = "" },
		"an id with a slash":  func(o *Options) { o.ID = "a/b" },
		"a long id":           func(o *Options) { o.ID = strings.Repeat("a", 2000) },
		"a negative TTL":      func(o *Options) { o.TTL = -1 },
		"a user, no password": func(o *Options) { o.Username = "hdsd" },
	} {
		o := good
		spoil(&o)
		if _, err := Open(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestPagesRecover: errors that have passed do not leave a follower with small pages.
func TestPagesRecover(t *testing.T) {
	page := int64(pageEntries)
	for range 10 {
		page = smaller(page)
	}
	if page != 1 {
		t.Errorf("after ten errors a page has %d entries", page)
	}
	for range pageEntries {
		page = larger(page)
	}
	if page != pageEntries {
		t.Errorf("after %d answers a page has %d entries", pageEntries, page)
	}
}

func TestErrorsAreClassified(t *testing.T) {
	cancelled := func(err error) error { return status.Error(codes.Unavailable, err.Error()) } // as a watch says it
	for _, c := range []struct {
		err  error
		want error
	}{
		{rpctypes.ErrGRPCNoSpace, ErrNoSpace},
		{rpctypes.ErrGRPCAuthFailed, ErrAuthentication},
		{rpctypes.ErrGRPCUserEmpty, ErrAuthentication},
		{rpctypes.ErrGRPCInvalidAuthToken, ErrAuthentication},
		{cancelled(rpctypes.ErrGRPCInvalidAuthToken), ErrAuthentication},
		{rpctypes.ErrGRPCPermissionDenied, ErrPermission},
		{cancelled(rpctypes.ErrGRPCPermissionDenied), ErrPermission},
		{rpctypes.ErrGRPCRequestTooLarge, ErrTooLarge},
		{rpctypes.ErrGRPCNoLeader, ErrUnavailable},
		{rpctypes.ErrGRPCTimeout, ErrUnavailable},
		{rpctypes.ErrGRPCRequestTooManyRequests, ErrUnavailable},
		{rpctypes.ErrGRPCCorrupt, ErrDamaged},
		{status.Error(codes.DeadlineExceeded, "context deadline exceeded"), ErrUnavailable},
		{context.DeadlineExceeded, ErrUnavailable},
		{status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: connection refused"`), ErrUnavailable},
		{status.Error(codes.Unavailable, `connection error: desc = "transport: authentication handshake failed: tls: x"`), ErrTLS},
		{rpctypes.ErrGRPCLeaseNotFound, nil},
	} {
		got := classify("operation", c.err)
		if !errors.Is(kindOf(c.err), c.want) || c.want != nil && !errors.Is(got, c.want) || !strings.HasPrefix(got.Error(), "operation: ") {
			t.Errorf("%v is %v, want %v", c.err, got, c.want)
		}
	}
	if !isTokenStale(cancelled(rpctypes.ErrGRPCInvalidAuthToken)) || isTokenStale(rpctypes.ErrGRPCAuthFailed) {
		t.Error("which errors ask for a new token")
	}
}

func TestThePrefixIsChecked(t *testing.T) {
	fleet := founding{ID: "f", After: 100, text: []byte("f")}
	for _, c := range []struct {
		name   string
		extent extent
		fleet  string
		cursor uint64
		want   error
	}{
		{"in step", extent{fleet: fleet, first: 101, count: 5}, "f", 105, nil},
		{"behind", extent{fleet: fleet, first: 101, count: 5}, "f", 0, nil},
		{"no entries yet", extent{fleet: fleet}, "f", 100, nil},
		{"ahead", extent{fleet: fleet, first: 101, count: 5}, "f", 106, ErrRestored},
		{"ahead of an empty log", extent{fleet: fleet}, "f", 101, ErrRestored},
		{"another fleet", extent{fleet: fleet}, "g", 0, ErrOtherFleet},
		{"no fleet", extent{}, "f", 0, ErrWiped},
		{"entries without a fleet", extent{first: 1, count: 5}, "f", 3, ErrWiped},
	} {
		if err := c.extent.check(c.fleet, c.cursor); !errors.Is(err, c.want) || err != nil && strings.Contains(err.Error(), "entry 0") {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	for cursor, want := range map[uint64]bool{0: true, 99: true, 100: false, 105: false} {
		for _, e := range []extent{{fleet: fleet}, {fleet: fleet, first: 101, count: 5}} {
			if got := e.isTrimmed(cursor); got != want {
				t.Errorf("cursor %d: trimmed is %v", cursor, got)
			}
		}
	}
}

// TestTheFateOfACommit: what a refused transaction reads decides whether an attempt before was
// the one that put the entry.
func TestTheFateOfACommit(t *testing.T) {
	fleet := founding{ID: "f", After: 100, text: []byte(`{"id":"f","after":100}`)}
	own := proposal{106, term{42, 7}, encode(42, []byte("p"))}
	leader := &mvccpb.KeyValue{Key: k.leader(), CreateRevision: 42, Lease: 7}
	entry := func(epoch int64, payload string) *mvccpb.KeyValue {
		return &mvccpb.KeyValue{Key: k.entry(106), Value: encode(epoch, []byte(payload))}
	}
	for _, c := range []struct {
		name     string
		sequence uint64
		first    uint64 // of five entries, or 0
		fleet    []byte
		leader   *mvccpb.KeyValue
		entry    *mvccpb.KeyValue
		want     fate
		err      error
	}{
		{"it is there", 106, 102, fleet.text, leader, entry(42, "p"), fateCommitted, nil},
		{"it is there, and there is another leader", 106, 102, fleet.text, nil, entry(42, "p"), fateCommitted, nil},
		{"another payload", 106, 102, fleet.text, leader, entry(42, "q"), 0, ErrTaken},
		{"the same payload of another epoch", 106, 102, fleet.text, &mvccpb.KeyValue{CreateRevision: 43, Lease: 7}, entry(43, "p"), 0, ErrFenced},
		{"no leader", 106, 101, fleet.text, nil, nil, 0, ErrFenced},
		{"another epoch", 106, 101, fleet.text, &mvccpb.KeyValue{CreateRevision: 43, Lease: 7}, nil, 0, ErrFenced},
		{"the same epoch in a restored etcd", 106, 101, fleet.text, &mvccpb.KeyValue{CreateRevision: 42, Lease: 8}, nil, 0, ErrFenced},
		{"the entry before is missing", 106, 50, fleet.text, leader, nil, 0, ErrRestored},
		{"the first one", 101, 0, fleet.text, leader, nil, fateBegins, nil},
		{"not the first one", 100, 0, fleet.text, leader, nil, 0, ErrGap},
		{"the fleet is gone", 106, 0, nil, leader, nil, 0, ErrWiped},
	} {
		own.sequence = c.sequence
		got, err := k.judge(own, answers(c.fleet, c.first, c.leader, c.entry), fleet)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: fate %d, %v; want %d, %v", c.name, got, err, c.want, c.err)
		}
	}
}

// answers is what a refused commit reads.
func answers(fleet []byte, first uint64, others ...*mvccpb.KeyValue) *pb.TxnResponse {
	kvs := []*mvccpb.KeyValue{nil, nil, nil}
	counts := []int64{0, 0, 0}
	if fleet != nil {
		kvs[0] = &mvccpb.KeyValue{Key: k.fleet(), Value: fleet}
	}
	if first > 0 {
		kvs[1], counts[2] = &mvccpb.KeyValue{Key: k.entry(first)}, 5
	}
	answer := &pb.TxnResponse{Header: &pb.ResponseHeader{Revision: 1000}}
	for i, kv := range append(kvs, others...) {
		r := &pb.RangeResponse{}
		if kv != nil {
			r.Kvs = []*mvccpb.KeyValue{kv}
		}
		if i < len(counts) {
			r.Count = counts[i]
		}
		answer.Responses = append(answer.Responses, &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: r}})
	}
	return answer
}

func TestTheViewFollowsKeys(t *testing.T) {
	revision := int64(0)
	change := func(v View, key, value string) View {
		revision++
		kv := &mvccpb.KeyValue{Key: []byte("/hdsd/" + key), Value: []byte(value), CreateRevision: revision, ModRevision: revision, Lease: revision}
		if v = v.clone(); value == "" {
			v.deleted(k, kv)
		} else {
			v.put(k, kv)
		}
		return v
	}
	var v View
	told := []string{}
	for _, step := range [][2]string{
		{"replicas/b", `{"address":"b:1"}`}, {"leader", `{"id":"b"}`}, {"replicas/a", `{"address":"a:1"}`},
		{"replicas/b", `{"address":"b:2"}`}, {"leader", ""}, {"replicas/b", ""}, {"leader", `{"id":"a"}`}, {"replicas/c", "no JSON"}, {"other", "x"},
		{"replicas/", "{}"}, {"replicas/\xff", "{}"}, {"replicas/a/b", "{}"}, {"replicas/" + strings.Repeat("x", 2000), "{}"},
		{"replicas/c", `{"address":"` + strings.Repeat("x", 5000) + `"}`},
	} {
		v = change(v, step[0], step[1])
		text := fmt.Sprint(v.Leader, v.Epoch)
		for _, m := range v.Members {
			text += " " + m.ID + "=" + m.Address
		}
		told = append(told, text)
	}
	want := []string{
		"0 b=b:1", "b2 b=b:1", "b2 a=a:1 b=b:1", "b2 a=a:1 b=b:2", "0 a=a:1 b=b:2", "0 a=a:1", "a7 a=a:1", "a7 a=a:1 c=", "a7 a=a:1 c=",
		"a7 a=a:1 c=", "a7 a=a:1 c=", "a7 a=a:1 c=", "a7 a=a:1 c=", "a7 a=a:1 c=",
	}
	if !slices.Equal(told, want) {
		t.Errorf("got  %q\nwant %q", told, want)
	}
}

// TestManyReplicasTakeTheirSizeOnce: something else may have written many keys below the prefix.
func TestManyReplicasTakeTheirSizeOnce(t *testing.T) {
	const count = 3000
	var before, after runtime.MemStats
	c := &Client{keys: k, view: newCell[View]()}
	runtime.ReadMemStats(&before)
	response := new(pb.WatchResponse)
	for i := range count {
		response.Events = append(response.Events, &mvccpb.Event{Kv: &mvccpb.KeyValue{Key: fmt.Appendf(nil, "/hdsd/replicas/%06d", i), Value: []byte("{}")}})
	}
	if err := c.applyEvents(response); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if view, _ := c.view.get(); len(view.Members) != count {
		t.Errorf("the view has %d replicas", len(view.Members))
	}
	if each := (after.TotalAlloc - before.TotalAlloc) / count; each > 10_000 {
		t.Errorf("each replica takes %d bytes", each)
	}
}

func TestWhenASeatIsOpen(t *testing.T) {
	view := func(revision, lease int64) View {
		v := View{Known: true, revision: revision}
		if lease != 0 {
			v.Members = []Member{{ID: "a", lease: lease}}
		}
		return v
	}
	for _, c := range []struct {
		name string
		seat seat
		view View
		want bool
	}{
		{"nothing is known", seat{}, view(9, 5), true},
		{"registered", seat{lease: 5, revision: 9}, view(9, 5), false},
		{"registered, in an old view", seat{lease: 5, revision: 9}, view(8, 0), false},
		{"the key was deleted", seat{lease: 5, revision: 9}, view(10, 0), true},
		{"the key was replaced", seat{lease: 5, revision: 9}, view(10, 6), true},
		{"another process has it", seat{holder: 6, revision: 9}, view(9, 6), false},
		{"that process is gone", seat{holder: 6, revision: 9}, view(10, 0), true},
		{"that process has a new session", seat{holder: 6, revision: 9}, view(10, 7), true},
	} {
		if got := c.seat.isOpen(c.view, "a"); got != c.want {
			t.Errorf("%s: open is %v", c.name, got)
		}
	}
}

func TestTheStatusKeepsTheFirstTime(t *testing.T) {
	second := func(s int) time.Time { return time.Unix(int64(s), 0) }
	s, news := Status{Connected: true, Since: second(1)}.failed(Problem{TaskSession, second(2), ErrUnavailable})
	if !news || s.Connected || s.Since != second(2) {
		t.Errorf("after an error: %+v, news %v", s, news)
	}
	s, news = s.failed(Problem{TaskSession, second(3), fmt.Errorf("again: %w", ErrUnavailable)})
	if news || s.Since != second(2) || len(s.Problems) != 1 || s.Problems[0].Since != second(2) || s.Problems[0].Err == ErrUnavailable { //nolint:errorlint // the text is newer
		t.Errorf("after the same error: %+v, news %v", s, news)
	}
	if s, news = s.failed(Problem{TaskSession, second(4), ErrNoSpace}); !news || s.Problems[0].Since != second(2) {
		t.Errorf("after another error: %+v, news %v", s, news)
	}
	s, _ = s.failed(Problem{TaskFollow, second(5), ErrUnavailable})
	s, news = s.cleared(TaskSession, second(6))
	if !news || !s.Connected || s.Since != second(6) || len(s.Problems) != 1 || s.Problems[0].Task != TaskFollow {
		t.Errorf("after a success: %+v, news %v", s, news)
	}
	if _, news = s.cleared(TaskSession, second(7)); news {
		t.Error("a success after a success is news")
	}
}

// TestAMissedChangeWakesACell: a reader that is late sees the latest value.
func TestAMissedChangeWakesACell(t *testing.T) {
	c := newCell[int]()
	_, changed := c.get()
	c.set(1)
	c.set(2)
	<-changed
	if value, _ := c.get(); value != 2 {
		t.Errorf("it has %d", value)
	}
}

// TestErrorsAreShort, although something else may have written long keys and values.
func TestErrorsAreShort(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	_, key := k.sequence([]byte(long))
	_, fleet := parseFounding(&mvccpb.KeyValue{Key: k.fleet(), Value: []byte(long)})
	for _, err := range []error{key, fleet} {
		if !errors.Is(err, ErrDamaged) || len(err.Error()) > 500 {
			t.Errorf("an error has %d bytes: %.200v", len(err.Error()), err)
		}
	}
}

// FuzzKeys covers keys and values below the prefix that something else has written.
func FuzzKeys(f *testing.F) {
	for _, seed := range [][2]string{
		{"/hdsd/log/00000000000000000007", "\x00\x00\x00\x00\x00\x00\x00\x01payload"}, {"/hdsd/leader", `{"id":"a","since":"2026-11-29T08:00:00Z"}`},
		{"/hdsd/replicas/a", `{"address":"10.0.0.1:18100","version":"1.0"}`}, {"/hdsd/replicas/a/b", "{}"}, {"/hdsd/fleet", `{"id":"f","after":7}`}, {"", ""},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		kv := &mvccpb.KeyValue{Key: key, Value: value, CreateRevision: 1, ModRevision: 1}
		if e, err := k.decode(key, value); err == nil && (string(k.entry(e.Sequence)) != string(key) || string(encode(e.Epoch, e.Payload)) != string(value)) {
			t.Errorf("%q, %q is entry %+v", key, value, e)
		}
		if founded, err := parseFounding(kv); err == nil && founded.ID == "" {
			t.Error("a fleet without an id")
		}
		var v View
		v.put(k, kv)
		v.put(k, kv)
		if len(v.Members) > 1 || len(v.Members) == 1 && !isID(v.Members[0].ID) {
			t.Errorf("%q, %q is %+v", key, value, v.Members)
		}
		if v.deleted(k, kv); len(v.Members) > 0 || v.Leader != "" {
			t.Errorf("%q stays: %+v", key, v)
		}
	})

}

// TestTheWordsOfEtcd are those of the package for clients of etcd.
func TestTheWordsOfEtcd(t *testing.T) {
	for text, want := range map[string]error{
		saysAuthFailed: rpctypes.ErrGRPCAuthFailed, saysAuthNotEnabled: rpctypes.ErrGRPCAuthNotEnabled, saysAuthOldRevision: rpctypes.ErrGRPCAuthOldRevision,
		saysCompacted: rpctypes.ErrGRPCCompacted, saysInvalidAuthToken: rpctypes.ErrGRPCInvalidAuthToken, saysLeaseExist: rpctypes.ErrGRPCLeaseExist,
		saysLeaseNotFound: rpctypes.ErrGRPCLeaseNotFound, saysNoSpace: rpctypes.ErrGRPCNoSpace, saysPermissionDenied: rpctypes.ErrGRPCPermissionDenied,
		saysRequestTooLarge: rpctypes.ErrGRPCRequestTooLarge, saysUserEmpty: rpctypes.ErrGRPCUserEmpty, saysUserNotFound: rpctypes.ErrGRPCUserNotFound,
	} {
		if !hasMessage(want, text) {
			t.Errorf("%q, want %v", text, want)
		}
	}
	if requireLeaderKey != rpctypes.MetadataRequireLeaderKey || requireLeader != rpctypes.MetadataHasLeader || tokenKey != rpctypes.TokenFieldNameGRPC {
		t.Error("the metadata of calls differ")
	}
}
