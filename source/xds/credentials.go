package xds

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	credentialv3 "github.com/envoyproxy/go-control-plane/envoy/config/grpc_credential/v3"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/credentials/local"
	"google.golang.org/grpc/metadata"

	"hdsd/internal/yamlpb"
)

// maxSecretBytes is the size limit of a file with a certificate, a key or a token.
const maxSecretBytes = 4 << 20

// read returns the current content of a data source.
func read(data *corev3.DataSource) ([]byte, error) {
	switch s := data.GetSpecifier().(type) {
	case *corev3.DataSource_Filename:
		data, err := yamlpb.ReadFile(s.Filename, maxSecretBytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Filename, err)
		}
		return data, nil
	case *corev3.DataSource_InlineBytes:
		return s.InlineBytes, nil
	case *corev3.DataSource_InlineString:
		return []byte(s.InlineString), nil
	case *corev3.DataSource_EnvironmentVariable:
		value, ok := os.LookupEnv(s.EnvironmentVariable)
		if !ok {
			return nil, fmt.Errorf("the environment variable %s is not set", s.EnvironmentVariable)
		}
		return []byte(value), nil
	default:
		return nil, errors.New("needs a filename, inline_string, inline_bytes or environment_variable")
	}
}

// transport makes the credentials of a connection, from the current content of the
// files.
func transport(google *corev3.GrpcService_GoogleGrpc) (credentials.TransportCredentials, error) {
	switch c := google.GetChannelCredentials().GetCredentialSpecifier().(type) {
	case *corev3.GrpcService_GoogleGrpc_ChannelCredentials_SslCredentials:
		config, err := clientTLS(c.SslCredentials)
		if err != nil {
			return nil, err
		}
		return credentials.NewTLS(config), nil
	case *corev3.GrpcService_GoogleGrpc_ChannelCredentials_LocalCredentials:
		return local.NewCredentials(), nil
	default:
		return insecure.NewCredentials(), nil
	}
}

// fileError is a fault of a file named by a field.
type fileError struct {
	field string
	err   error
}

func (e *fileError) Error() string { return "ssl_credentials." + e.field + ": " + e.err.Error() }
func (e *fileError) Unwrap() error { return e.err }

func clientTLS(c *corev3.GrpcService_GoogleGrpc_SslCredentials) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.GetRootCerts() != nil {
		pem, err := read(c.GetRootCerts())
		if err != nil {
			return nil, &fileError{"root_certs", err}
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &fileError{"root_certs", errors.New("holds no certificate in PEM form")}
		}
	}
	if c.GetPrivateKey() == nil && c.GetCertChain() == nil {
		return config, nil
	}
	chain, err := read(c.GetCertChain())
	if err != nil {
		return nil, &fileError{"cert_chain", err}
	}
	key, err := read(c.GetPrivateKey())
	if err != nil {
		return nil, &fileError{"private_key", err}
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, &fileError{"cert_chain", fmt.Errorf("makes no pair with private_key: %w", err)}
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// withMetadata adds the metadata of a stream. It reads tokens from their files for each
// stream.
func withMetadata(ctx context.Context, service *corev3.GrpcService) (context.Context, error) {
	md := metadata.MD{}
	for _, header := range service.GetInitialMetadata() {
		value := strings.ReplaceAll(header.GetValue(), "%%", "%")
		if len(header.GetRawValue()) > 0 {
			value = string(header.GetRawValue())
		}
		md.Append(header.GetKey(), value)
	}
	for _, call := range service.GetGoogleGrpc().GetCallCredentials() {
		switch c := call.GetCredentialSpecifier().(type) {
		case *corev3.GrpcService_GoogleGrpc_CallCredentials_AccessToken:
			md.Append("authorization", "Bearer "+c.AccessToken)
		case *corev3.GrpcService_GoogleGrpc_CallCredentials_FromPlugin:
			key, value, err := fileBased(c.FromPlugin)
			if err != nil {
				return nil, fmt.Errorf("call_credentials: %w", err)
			}
			md.Append(key, value)
		default: // Validate accepts nothing else
		}
	}
	return metadata.NewOutgoingContext(ctx, md), nil
}

// fileBased returns the header with a token from a file.
func fileBased(plugin *corev3.GrpcService_GoogleGrpc_CallCredentials_MetadataCredentialsFromPlugin) (key, value string, err error) {
	config := &credentialv3.FileBasedMetadataConfig{}
	if err := plugin.GetTypedConfig().UnmarshalTo(config); err != nil {
		return "", "", err
	}
	data, err := read(config.GetSecretData())
	if err != nil {
		return "", "", err
	}
	key = strings.ToLower(config.GetHeaderKey())
	if key == "" {
		key = "authorization"
	}
	token := strings.TrimRight(string(data), "\r\n")
	if strings.HasSuffix(key, "-bin") {
		return key, config.GetHeaderPrefix() + token, nil
	}
	if !printable(token) {
		return "", "", errors.New("the token has characters that a header cannot have: write it in printable ASCII, on one line")
	}
	return key, config.GetHeaderPrefix() + token, nil
}

// printable reports whether a text is a valid header value.
func printable(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}
