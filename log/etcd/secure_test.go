package etcd_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"go.etcd.io/etcd/api/v3/authpb"
	"google.golang.org/grpc/metadata"

	"hdsd/log/etcd"
	server "hdsd/test/etcd"
)

// must returns a value, or ends the test.
func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// TestAuthentication: a wrong password and a missing right are told apart, and end when an
// operator changes them; a password is rotated while commits go on.
func TestAuthentication(t *testing.T) {
	s := server.Start(t, "--bcrypt-cost=4")
	auth := pb.NewAuthClient(raw(t, s))
	ctx := limited(t)
	must[*pb.AuthUserAddResponse](t)(auth.UserAdd(ctx, &pb.AuthUserAddRequest{Name: "root", Password: "root"}))
	must[*pb.AuthUserGrantRoleResponse](t)(auth.UserGrantRole(ctx, &pb.AuthUserGrantRoleRequest{User: "root", Role: "root"}))
	must[*pb.AuthUserAddResponse](t)(auth.UserAdd(ctx, &pb.AuthUserAddRequest{Name: "hdsd", Password: "first"}))
	must[*pb.AuthRoleAddResponse](t)(auth.RoleAdd(ctx, &pb.AuthRoleAddRequest{Name: "hdsd"}))
	must[*pb.AuthUserGrantRoleResponse](t)(auth.UserGrantRole(ctx, &pb.AuthUserGrantRoleRequest{User: "hdsd", Role: "hdsd"}))
	must[*pb.AuthEnableResponse](t)(auth.AuthEnable(ctx, &pb.AuthEnableRequest{}))
	token := must[*pb.AuthenticateResponse](t)(auth.Authenticate(ctx, &pb.AuthenticateRequest{Name: "root", Password: "root"})).Token
	root := metadata.AppendToOutgoingContext(ctx, "token", token)

	var password atomic.Value
	password.Store("wrong")
	a := open(t, "a", func(o *etcd.Options) {
		o.Username, o.Password = "hdsd", func() (string, error) { return password.Load().(string), nil }
	}, s)
	says(t, a, etcd.TaskView, etcd.ErrAuthentication)
	password.Store("first")
	says(t, a, etcd.TaskView, etcd.ErrPermission)
	grant := &authpb.Permission{PermType: authpb.READWRITE, Key: []byte(prefix + "/"), RangeEnd: []byte(prefix + "0")}
	must[*pb.AuthRoleGrantPermissionResponse](t)(auth.RoleGrantPermission(root, &pb.AuthRoleGrantPermissionRequest{Name: "hdsd", Perm: grant}))
	log := join(t, a, "", 0)
	r := follow(t, log, 0)
	epoch := campaign(t, log)
	commit(t, log, epoch, 1, 5)
	// Whoever changes a password ends the tokens of its user.
	password.Store("second")
	must[*pb.AuthUserChangePasswordResponse](t)(auth.UserChangePassword(root, &pb.AuthUserChangePasswordRequest{Name: "hdsd", Password: "second"}))
	commit(t, log, epoch, 6, 10)
	r.reads(t, 0, 10)
	connected(t, a)
}

func TestAPasswordThatCannotBeRead(t *testing.T) {
	s := server.Start(t)
	gone := errors.New("no such file")
	a := open(t, "a", func(o *etcd.Options) {
		o.Username, o.Password = "hdsd", func() (string, error) { return "", gone }
	}, s)
	says(t, a, etcd.TaskSession, gone)
}

// TestTLS: with certificates on both sides etcd answers, without the client's it does not.
func TestTLS(t *testing.T) {
	folder := t.TempDir()
	authority, key := certificate(t, folder, "authority", nil, nil)
	certificate(t, folder, "server", authority, key)
	certificate(t, folder, "client", authority, key)
	path := func(name string) string { return filepath.Join(folder, name) }
	s := server.Start(t, "--cert-file="+path("server.pem"), "--key-file="+path("server.key"),
		"--client-cert-auth", "--trusted-ca-file="+path("authority.pem"))
	pool := x509.NewCertPool()
	pool.AddCert(authority)
	own := must[tls.Certificate](t)(tls.LoadX509KeyPair(path("client.pem"), path("client.key")))

	stranger := open(t, "a", nil, s)
	says(t, stranger, etcd.TaskSession, etcd.ErrTLS)
	a := open(t, "b", func(o *etcd.Options) { o.TLS = &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}} }, s)
	log := join(t, a, "", 0)
	commit(t, log, campaign(t, log), 1, 3)
	follow(t, log, 0).reads(t, 0, 3)
}

// certificate makes a certificate by an authority, or an authority, and its files.
func certificate(t *testing.T, folder, name string, authority *x509.Certificate, authorityKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: authority == nil,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if authority == nil {
		authority, authorityKey = template, key
	}
	der := must[[]byte](t)(x509.CreateCertificate(rand.Reader, template, authority, &key.PublicKey, authorityKey))
	secret := must[[]byte](t)(x509.MarshalECPrivateKey(key))
	for file, block := range map[string]*pem.Block{
		name + ".pem": {Type: "CERTIFICATE", Bytes: der},
		name + ".key": {Type: "EC PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(filepath.Join(folder, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return must[*x509.Certificate](t)(x509.ParseCertificate(der)), key
}
