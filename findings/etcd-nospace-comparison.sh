#!/usr/bin/env bash
# etcd at its quota refuses a transaction because of a put that its comparison does not choose.
#
# Packages:  go.etcd.io/etcd/server/v3 and client/v3 3.7.3 (Go modules).
# Seen:      etcd has reached its quota and raised NOSPACE. The transaction If(a key exists) Then(put) Else(get) fails
#            with "etcdserver: mvcc: database space exceeded", although the key does not exist. Without the put, with
#            the same comparison, it answers Succeeded = false. Deletions and renewals of leases go on.
# Surprise:  the documentation says that such an etcd accepts reads and deletions. A program that guards its writes by a
#            comparison (a lock, a leader's key) learns of the quota only, and not that its guard is gone.
# In hdsd:   log/etcd takes a commit without space for one with an unknown fate. Whether the replica still leads, it
#            learns from its view of the leader's key.
#
# Exits 0 if that is seen. Needs Go.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

cat > go.mod <<'MOD'
module finding

go 1.26
MOD
cat > main.go <<'GO'
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/url"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/api/v3/version"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
)

func main() {
	fmt.Println("etcd", version.Version)
	config := embed.NewConfig()
	config.Dir, config.LogLevel, config.QuotaBackendBytes = os.Args[1], "fatal", 256<<10
	config.UnsafeNoFsync = true
	local, err := url.Parse("http://127.0.0.1:0")
	check(err)
	config.ListenClientUrls, config.ListenPeerUrls = []url.URL{*local}, []url.URL{*local}
	server, err := embed.StartEtcd(config)
	check(err)
	defer server.Close()
	<-server.Server.ReadyNotify()
	client := v3client.New(server.Server)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	lease, err := client.Grant(ctx, 60)
	check(err)
	for err == nil { // to the quota
		_, err = client.Put(ctx, "filler", strings.Repeat("x", 16<<10))
	}
	fmt.Println("put:", err)

	absent := clientv3.Compare(clientv3.CreateRevision("absent"), ">", 0)
	answer, err := client.Txn(ctx).If(absent).Else(clientv3.OpGet("filler", clientv3.WithCountOnly())).Commit()
	check(err)
	fmt.Println("comparison without a put: succeeded", answer.Succeeded)
	require(!answer.Succeeded)

	_, err = client.Txn(ctx).If(absent).Then(clientv3.OpPut("absent", "")).Else(clientv3.OpGet("filler", clientv3.WithCountOnly())).Commit()
	fmt.Println("the same beside a put that is not chosen:", err)
	require(isNoSpace(err))

	_, err = client.KeepAliveOnce(ctx, lease.ID)
	check(err)
	_, err = client.Delete(ctx, "filler")
	check(err)
	fmt.Println("renewal of a lease, deletion: accepted")
}

// isNoSpace reports whether an error says that etcd is at its quota, in the words of the client or of the server.
func isNoSpace(err error) bool {
	return err != nil && (errors.Is(err, rpctypes.ErrNoSpace) || strings.Contains(err.Error(), "no space") || strings.Contains(err.Error(), "space exceeded"))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func require(seen bool) {
	if !seen {
		log.Fatal("this is not what was seen with 3.7.3")
	}
}
GO
GOFLAGS=-mod=mod go get go.etcd.io/etcd/server/v3@v3.7.3 go.etcd.io/etcd/client/v3@v3.7.3 2> get || { cat get; exit 1; }
go mod tidy 2> get || { cat get; exit 1; }
go run . "$folder/data"
