package maintenance

import (
	"context"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	configv1 "hdsd/gen/hdsd/config/v1"
	log_etcd "hdsd/log/etcd"
	"hdsd/test/etcd"
)

// must ends the test on an error.
func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// raw connects to a server of etcd as an operator does.
func raw(t *testing.T, server *etcd.Server) *grpc.ClientConn {
	conn := must[*grpc.ClientConn](t)(grpc.NewClient(server.Address, grpc.WithTransportCredentials(insecure.NewCredentials())))
	t.Cleanup(func() { conn.Close() })
	return conn
}

// wantFindings compares the problems of a configuration with texts, and wants each of the notes.
func wantFindings(t *testing.T, c *configv1.Config, problems []string, notes ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var found, noted []string
	for _, f := range Examine(ctx, c) {
		if text := f.Field + ": " + f.Message; f.Note {
			noted = append(noted, text)
		} else {
			found = append(found, text)
		}
	}
	bad := len(found) != len(problems)
	for i := 0; !bad && i < len(problems); i++ {
		bad = !strings.Contains(found[i], problems[i])
	}
	if bad {
		t.Errorf("the problems are\n%s\nwant\n%s", strings.Join(found, "\n"), strings.Join(problems, "\n"))
	}
	for _, note := range notes {
		if all := strings.Join(noted, "\n"); !strings.Contains(all, note) {
			t.Errorf("the notes are without %q:\n%s", note, all)
		}
	}
}

// alone is the configuration of a replica without a database.
func alone(server *etcd.Server, t *testing.T) *configv1.Config {
	return &configv1.Config{NodeId: "r1", DataDir: t.TempDir(), Replication: &configv1.Replication{
		Etcd: &configv1.Replication_Etcd{Endpoints: []string{server.URL}, Prefix: "/hdsd"}, SessionTtl: durationpb.New(10 * time.Second),
	}}
}

// TestExamination covers what may be wrong with etcd, one after the other.
func TestExamination(t *testing.T) {
	server, other := etcd.Start(t), etcd.Start(t)
	wantFindings(t, alone(server, t), nil, "etcd at "+server.URL+" answers: version 3.", "etcd has no fleet at /hdsd yet")

	c := alone(server, t)
	c.Replication.SessionTtl = durationpb.New(time.Second)
	c.Replication.Etcd.Endpoints = append(c.Replication.Etcd.Endpoints, other.URL)
	wantFindings(t, c, []string{
		"replication.etcd.endpoints[1]: " + other.URL + " is a member of another etcd cluster than " + server.URL,
		"replication.session_ttl: etcd grants 2s, not 1s",
	})
	other.Kill()
	c = alone(server, t)
	c.Replication.Etcd.Endpoints = append(c.Replication.Etcd.Endpoints, other.URL)
	wantFindings(t, c, []string{"replication.etcd.endpoints[1]: " + other.URL + ": asking for the status of etcd: etcd does not answer"})

	wantFindings(t, configOf(t, server, "ours", 7), []string{"replication.session_ttl: ", "replication.etcd.prefix: etcd has lost this fleet"})
	options := must[log_etcd.Options](t)(Options(alone(server, t)))
	options.ID, options.Address = "r2", "127.0.0.1:1"
	client := must[*log_etcd.Client](t)(log_etcd.Open(options))
	defer client.Close()
	log := must[*log_etcd.Log](t)(client.Join(t.Context(), "", 0))
	must[int64](t)(log.Campaign(t.Context()))
	wantFindings(t, configOf(t, server, "ours", 7), []string{
		"replication.session_ttl: ", "replication.etcd.prefix: the prefix belongs to another fleet",
		"replication.peer: replica r2 at 127.0.0.1:1: connection error",
	})
	kv := pb.NewKVClient(raw(t, server))
	must[*pb.PutResponse](t)(kv.Put(t.Context(), &pb.PutRequest{Key: []byte("/hdsd/mine"), Value: []byte("x")}))
	wantFindings(t, configOf(t, server, log.Fleet(), 7), []string{
		"replication.session_ttl: ", "replication.etcd.prefix: keys below /hdsd that are not of hdsd: 1",
		"replication.etcd.prefix: the log in etcd ends before the cursor", "replication.peer: replica r2",
	}, "etcd has fleet "+log.Fleet())
}

func TestOutdatedEtcd(t *testing.T) {
	for version, want := range map[string]bool{"3.4.35": true, "3.5.0": false, "3.10.1": false, "4.0.0": false, "": false} {
		if got := isOutdated(version); got != want {
			t.Errorf("%q: %t", version, got)
		}
	}
}

// TestExaminationOfRights covers a user without them, and a full etcd.
func TestExaminationOfRights(t *testing.T) {
	server := etcd.Start(t, "--bcrypt-cost=4")
	maintenance := pb.NewMaintenanceClient(raw(t, server))
	must[*pb.AlarmResponse](t)(maintenance.Alarm(t.Context(), &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, Alarm: pb.AlarmType_NOSPACE}))
	wantFindings(t, alone(server, t), []string{"replication.etcd: etcd has no space"})
	must[*pb.AlarmResponse](t)(maintenance.Alarm(t.Context(), &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, Alarm: pb.AlarmType_NOSPACE}))

	auth := pb.NewAuthClient(raw(t, server))
	must[*pb.AuthUserAddResponse](t)(auth.UserAdd(t.Context(), &pb.AuthUserAddRequest{Name: "root", Password: "root"}))
	must[*pb.AuthUserGrantRoleResponse](t)(auth.UserGrantRole(t.Context(), &pb.AuthUserGrantRoleRequest{User: "root", Role: "root"}))
	must[*pb.AuthUserAddResponse](t)(auth.UserAdd(t.Context(), &pb.AuthUserAddRequest{Name: "hdsd", Password: "secret"}))
	must[*pb.AuthEnableResponse](t)(auth.AuthEnable(t.Context(), &pb.AuthEnableRequest{}))
	for _, user := range []struct{ password, problem string }{
		{"wrong", "etcd refuses the user"},
		{"secret", "etcd denies the user this"},
	} {
		c := alone(server, t)
		options := must[log_etcd.Options](t)(Options(c))
		options.Username, options.Password = "hdsd", func() (string, error) { return user.password, nil }
		x := &examination{config: c}
		if x.servers(t.Context(), &options) {
			x.contents(t.Context(), options)
		}
		if len(x.found) == 0 || !strings.Contains(x.found[len(x.found)-1].Message, user.problem) {
			t.Errorf("%+v, want %q", x.found, user.problem)
		}
	}
}
