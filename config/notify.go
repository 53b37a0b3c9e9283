package config

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	configv1 "hdsd/gen/hdsd/config/v1"
)

// Bounds of notify and metrics.
const (
	maxReceivers    = 20
	maxReceiverName = 100
	maxSecret       = 4 << 10 // bytes
	maxGlobs        = 100
	maxSeries       = 1000
)

// notify checks whom to notify.
func (c *checks) notify(receivers []*configv1.Notify) {
	if len(receivers) > maxReceivers {
		c.add("notify", "has %d receivers: at most %d are possible", len(receivers), maxReceivers)
	}
	names := map[string]bool{}
	for i, n := range receivers {
		field := fmt.Sprintf("notify[%d]", i)
		switch name := n.GetName(); {
		case name == "" || len(name) > maxReceiverName || strings.TrimSpace(name) != name || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
			c.add(field+".name", "%q is no name: write 1 to %d bytes on one line, such as oncall", name, maxReceiverName)
		case names[name]:
			c.add(field+".name", "%q is the name of another receiver already", name)
		}
		names[n.GetName()] = true
		switch receiver := n.GetReceiver().(type) {
		case *configv1.Notify_Alertmanager_:
			receiverURL(c, field+".alertmanager.url", receiver.Alertmanager.GetUrl(), true)
		case *configv1.Notify_Webhook_:
			receiverURL(c, field+".webhook.url", receiver.Webhook.GetUrl(), false)
			secret(c, field+".webhook.secret_file", receiver.Webhook.GetSecretFile())
		default:
			c.add(field, "has no receiver: write alertmanager: {url: \"http://127.0.0.1:9093\"} or webhook: {url: …}")
		}
		notifyAs(c, field, n)
		if glob := n.GetClusterNameGlob(); glob != "" {
			c.glob(field+".cluster_name_glob", glob, "clusters")
		}
		c.duration(field+".min_duration", n.GetMinDuration(), 0, maxHold)
	}
}

// notifyAs checks what a receiver knows hdsd by, and how it is reached.
func notifyAs(c *checks, field string, n *configv1.Notify) {
	secure := strings.HasPrefix(n.GetAlertmanager().GetUrl()+n.GetWebhook().GetUrl(), "https:")
	if basic := n.GetBasicAuth(); basic != nil {
		if name := basic.GetUsername(); name == "" || strings.Contains(name, ":") {
			c.add(field+".basic_auth.username", "%q is no name: it may not be empty, nor have a colon", name)
		}
		if basic.GetPasswordFile() == "" {
			c.add(field+".basic_auth.password_file", "is needed: name a file with the password")
		}
		secret(c, field+".basic_auth.password_file", basic.GetPasswordFile())
	}
	secret(c, field+".token_file", n.GetTokenFile())
	if n.GetAuthorization() != nil && !secure {
		c.warn(field, "sends its secret without TLS: write a URL with https, unless nobody else sees the network between")
	}
	if tls := n.GetTls(); tls != nil {
		if !secure {
			c.add(field+".tls", "has no effect on a URL with http: write https, or remove tls")
		}
		if _, err := ReceiverTLS(tls.GetCaFile(), tls.GetCertificateChainFile(), tls.GetPrivateKeyFile()); err != nil {
			c.add(field+".tls", "%s", err)
		}
	}
}

// secret checks a file with a secret, if there is to be one.
func secret(c *checks, field, file string) {
	if file == "" {
		return
	}
	if _, err := ReadSecret(file); err != nil {
		c.add(field, "%s", err)
	}
}

// ReceiverTLS reads the files of how to connect to a server: a receiver of notifications, or etcd.
func ReceiverTLS(authorities, chain, key string) (*tls.Config, error) {
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	if authorities != "" {
		pem, err := os.ReadFile(authorities)
		if err != nil {
			return nil, fmt.Errorf("the authorities cannot be read: %w", err)
		}
		if tlsConfig.RootCAs = x509.NewCertPool(); !tlsConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate in PEM", authorities)
		}
	}
	if chain != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(chain, key)
		if err != nil {
			return nil, fmt.Errorf("certificate_chain_file and private_key_file: %w", err)
		}
		tlsConfig.Certificates = []tls.Certificate{pair}
	}
	return tlsConfig, nil
}

// checkMetrics checks which clusters have metrics of their own.
func checkMetrics(c *checks, m *configv1.Metrics) {
	if len(m.GetClusterNameGlobs()) > maxGlobs {
		c.add("metrics.cluster_name_globs", "has %d globs: at most %d are possible", len(m.GetClusterNameGlobs()), maxGlobs)
	}
	for i, glob := range m.GetClusterNameGlobs() {
		c.glob(fmt.Sprintf("metrics.cluster_name_globs[%d]", i), glob, "clusters")
	}
	if limit := m.GetMaxClusters(); limit > maxSeries {
		c.add("metrics.max_clusters", "is %d: from 1 to %d is possible", limit, maxSeries)
	}
}

// receiverURL checks where to post to.
func receiverURL(c *checks, field, text string, isBase bool) {
	address, err := url.Parse(text)
	switch {
	case err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Hostname() == "":
		c.add(field, "is no URL of http or https, such as http://127.0.0.1:9093")
	case address.Fragment != "":
		c.add(field, "has a fragment (#), which is not sent: remove it")
	case isBase && address.RawQuery != "":
		c.add(field, "has a query (?): write the base of the Alertmanager, such as http://127.0.0.1:9093")
	case isBase && strings.Contains(address.Path, "/api/v"):
		c.add(field, "names the API: write the base of the Alertmanager, such as http://127.0.0.1:9093; hdsd adds /api/v2/alerts")
	}
}

// ReadSecret reads a secret, without white space around it.
func ReadSecret(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the secret cannot be read: %w", err)
	}
	defer file.Close()
	secret, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	switch secret = bytes.TrimSpace(secret); {
	case err != nil:
		return nil, fmt.Errorf("the secret cannot be read: %w", err)
	case len(secret) == 0:
		return nil, fmt.Errorf("the secret in %s is empty", path)
	case len(secret) > maxSecret:
		return nil, fmt.Errorf("the secret in %s is longer than %d bytes", path, maxSecret)
	}
	return secret, nil
}
