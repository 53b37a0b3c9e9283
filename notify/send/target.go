package send

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"hdsd/notify"
)

// Limits of one request.
const (
	attemptTimeout = 10 * time.Second
	maxAnswer      = 1 << 10 // shown bytes of an answer
	maxBatch       = 100     // notices
)

// Types of targets.
const (
	Alertmanager = "alertmanager"
	Webhook      = "webhook"
)

// Target is the address of a receiver.
type Target struct {
	Type       string
	URL        string // of an Alertmanager: its base
	SecretFile string // of a webhook; empty: requests are not signed

	User         string // for basic authentication; empty: none
	PasswordFile string // for basic authentication
	TokenFile    string // of a bearer token; empty: none

	TLS TLS
}

// TLS names files, in PEM, for connections to a receiver. Without any, the system's
// authorities count, and hdsd has no certificate.
type TLS struct {
	CA, Chain, Key string
}

// refusal is the answer to an invalid request, which would fail again.
type refusal struct{ error }

// sender makes requests.
type sender struct {
	client     *http.Client
	node       string // hdsd's name
	readSecret func(path string) ([]byte, error)
	readTLS    func(TLS) (*tls.Config, error)
}

func newSender(o *Options, transport http.RoundTripper) *sender {
	return &sender{node: o.Node, readSecret: o.ReadSecret, readTLS: o.ReadTLS, client: &http.Client{
		Transport: transport, Timeout: attemptTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// send sends notices and returns the answer.
func (s *sender) send(ctx context.Context, target *Target, notices []notify.Notice, now time.Time) (answer string, err error) {
	address, body := target.URL, any(nil)
	if target.Type == Alertmanager {
		address, body = strings.TrimSuffix(target.URL, "/")+"/api/v2/alerts", s.alerts(notices)
	} else {
		body = s.delivery(notices, now)
	}
	data, err := json.Marshal(body)
	if err != nil {
		return "", refusal{err}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(data))
	if err != nil {
		return "", refusal{errors.New("the URL cannot be used")} // err has the URL, which may have a secret
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "hdsd")
	if target.SecretFile != "" {
		signature, err := sign(s.readSecret, target.SecretFile, data)
		if err != nil {
			return "", err
		}
		request.Header.Set("X-Hdsd-Signature", signature)
	}
	if err := s.authorize(request, target); err != nil {
		return "", err
	}
	if target.TLS == (TLS{}) {
		return s.do(s.client, request)
	}
	secured, err := s.secured(target.TLS)
	if err != nil {
		return "", err
	}
	defer secured.CloseIdleConnections()
	return s.do(secured, request)
}

// authorize adds hdsd's credentials, as they are in the files now.
func (s *sender) authorize(request *http.Request, target *Target) error {
	switch {
	case target.User != "":
		password, err := s.readSecret(target.PasswordFile)
		if err != nil {
			return err
		}
		request.SetBasicAuth(target.User, string(password))
	case target.TokenFile != "":
		token, err := s.readSecret(target.TokenFile)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+string(token))
	}
	return nil
}

// secured returns a client for one request, by the present content of the files.
func (s *sender) secured(files TLS) (*http.Client, error) {
	config, err := s.readTLS(files)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library documents its type
	transport.TLSClientConfig = config
	client := *s.client
	client.Transport = transport
	return &client, nil
}

// do makes a request. Its error does not have the URL.
func (s *sender) do(client *http.Client, request *http.Request) (answer string, err error) {
	response, err := client.Do(request)
	if err != nil {
		if urlErr, ok := errors.AsType[*url.Error](err); ok {
			err = urlErr.Err
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within %s", attemptTimeout)
		}
		return "", err
	}
	defer response.Body.Close()
	answer = strings.TrimSpace(response.Status + " " + textOf(response.Body, request))
	switch code := response.StatusCode; {
	case code/100 == 2:
		return answer, nil
	case code/100 == 3:
		return answer, fmt.Errorf("it redirects (%s), which hdsd does not follow: configure where it leads", response.Status)
	case code == http.StatusBadRequest || code == http.StatusRequestEntityTooLarge || code == http.StatusUnprocessableEntity:
		return answer, refusal{errors.New("it answers " + answer)}
	}
	return answer, errors.New("it answers " + answer)
}

// textOf returns the text of an answer to show, without the secrets of its request: a receiver
// may repeat the request.
func textOf(body io.Reader, request *http.Request) string {
	_, credentials, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	_, password, _ := request.BasicAuth()
	content, _ := io.ReadAll(io.LimitReader(body, int64(maxAnswer+len(credentials)))) // whatever it says, the status counts
	text := string(content)
	for _, secret := range []string{credentials, password} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "(secret)")
		}
	}
	return strings.ToValidUTF8(strings.TrimSpace(text[:min(len(text), maxAnswer)]), "?")
}

// sign returns the signature of a body by the secret in a file.
func sign(read func(string) ([]byte, error), file string, body []byte) (string, error) {
	secret, err := read(file)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil)), nil
}
