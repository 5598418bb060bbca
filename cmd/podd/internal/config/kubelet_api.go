package config

import (
	"cmp"
	"crypto/tls"
	"net"
	"slices"
	"time"

	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/manifest"
)

// KubeletAPI configures the kubelet API.
type KubeletAPI struct {
	// Listen is the address as "host:port"; "" disables the API.
	Listen string
	// CertFile and KeyFile are the serving certificate and its key; "": podd's own.
	CertFile, KeyFile string
	// MinTLS and Ciphers are IDs of crypto/tls; empty Ciphers: Go's defaults.
	MinTLS  uint16
	Ciphers []uint16
	// ClientCAFile contains CAs for client certificates, in addition to podd's own; may be
	// "".
	ClientCAFile string
	// TokenFile contains bearer tokens, and PolicyFile RBAC rules; both may be "".
	TokenFile, PolicyFile string
	// TokenReview authenticates other tokens in the cluster and caches results for TokenTTL.
	// AccessReview authorizes in the cluster and caches results for AllowedTTL and DeniedTTL.
	TokenReview, AccessReview       bool
	TokenTTL, AllowedTTL, DeniedTTL time.Duration
	// Anonymous admits clients without credentials. AlwaysAllow authorizes every client that
	// is admitted.
	Anonymous, AlwaysAllow bool
	// Debugging enables exec, logs and similar handlers, SystemLogs /var/log, Profiling
	// pprof, and DebugFlags changes of the log level.
	Debugging, SystemLogs, Profiling, DebugFlags bool
}

// tlsVersions maps the values of tlsMinVersion.
var tlsVersions = map[string]uint16{
	"": tls.VersionTLS12, "VersionTLS10": tls.VersionTLS10, "VersionTLS11": tls.VersionTLS11,
	"VersionTLS12": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13,
}

func (r *resolver) kubeletAPI() KubeletAPI {
	k, d, f := r.k, defaults(), r.flags
	a := KubeletAPI{
		CertFile: k.TLSCertFile, KeyFile: k.TLSPrivateKeyFile, MinTLS: tlsVersions[k.TLSMinVersion],
		ClientCAFile: k.Authentication.X509.ClientCAFile,
		TokenFile:    f.TokenAuthFile, PolicyFile: f.AuthorizationPolicyFile,
		Anonymous:   derefOr(k.Authentication.Anonymous.Enabled, d.Authentication.Anonymous.Enabled),
		AlwaysAllow: k.Authorization.Mode == kubelet.KubeletAuthorizationModeAlwaysAllow,
		Debugging:   derefOr(k.EnableDebuggingHandlers, d.EnableDebuggingHandlers),
		SystemLogs:  derefOr(k.EnableSystemLogHandler, d.EnableSystemLogHandler),
		Profiling:   derefOr(k.EnableProfilingHandler, d.EnableProfilingHandler),
		DebugFlags:  derefOr(k.EnableDebugFlagsHandler, d.EnableDebugFlagsHandler),
	}
	r.resolveReviews(&a)
	for _, name := range k.TLSCipherSuites {
		if id, ok := cipherID(name); ok {
			a.Ciphers = append(a.Ciphers, id)
		}
	}
	off := f.Port != nil && *f.Port == 0 // in a file 0 means the default
	if derefOr(k.EnableServer, d.EnableServer) && !off {
		a.Listen = listenAddress(cmp.Or(k.Address, a.defaultAddress()), cmp.Or(k.Port, d.Port))
	}
	r.warnAuthorization(&a)
	return a
}

// defaultAddress returns the default listen address: all interfaces if remote clients can
// authenticate, otherwise only loopback.
func (a *KubeletAPI) defaultAddress() string {
	if a.ClientCAFile == "" && a.TokenFile == "" && !a.TokenReview {
		return "127.0.0.1"
	}
	return "0.0.0.0"
}

// resolveReviews configures reviews by the cluster. A local policy replaces the default
// authorization by the cluster; both together are an error.
func (r *resolver) resolveReviews(a *KubeletAPI) {
	k, d := r.k, defaults()
	if r.flags.Kubeconfig == "" {
		return
	}
	webhook := k.Authorization.Mode == kubelet.KubeletAuthorizationModeWebhook
	if webhook && a.PolicyFile != "" {
		r.add(manifest.Error, "--authorization-policy-file", "cannot be used together with authorization mode Webhook; remove one of them")
	}
	a.TokenReview = derefOr(k.Authentication.Webhook.Enabled, d.Authentication.Webhook.Enabled)
	a.AccessReview = webhook || k.Authorization.Mode == "" && a.PolicyFile == ""
	a.TokenTTL = durationOr(k.Authentication.Webhook.CacheTTL, d.Authentication.Webhook.CacheTTL)
	a.AllowedTTL = durationOr(k.Authorization.Webhook.CacheAuthorizedTTL, d.Authorization.Webhook.CacheAuthorizedTTL)
	a.DeniedTTL = durationOr(k.Authorization.Webhook.CacheUnauthorizedTTL, d.Authorization.Webhook.CacheUnauthorizedTTL)
}

// warnAuthorization warns of settings that have no effect or are dangerous.
func (r *resolver) warnAuthorization(a *KubeletAPI) {
	k := r.k
	webhook := k.Authorization.Mode == kubelet.KubeletAuthorizationModeWebhook
	if token := k.Authentication.Webhook.Enabled; r.flags.Kubeconfig == "" && (webhook || token != nil && *token) {
		r.add(manifest.Warning, "", "webhook authentication and authorization have no effect without --kubeconfig: only root and clients that --authorization-policy-file authorizes can use the kubelet API")
	}
	if a.Listen != "" && a.Anonymous && a.AlwaysAllow {
		r.add(manifest.Warning, "", "anonymous authentication together with authorization mode AlwaysAllow: every client that can reach %s can run commands in every pod", a.Listen)
	}
}

// setEffective sets the fields of k to the effective values of settings that have another
// effect without a cluster than in the kubelet.
func (a *KubeletAPI) setEffective(k *kubelet.KubeletConfiguration) {
	k.EnableServer = new(a.Listen != "")
	k.Authentication.Webhook.Enabled = new(a.TokenReview)
	switch {
	case a.AccessReview:
		k.Authorization.Mode = kubelet.KubeletAuthorizationModeWebhook
	case !a.AlwaysAllow:
		k.Authorization.Mode = ""
	}
	if host, _, err := net.SplitHostPort(a.Listen); err == nil {
		k.Address = host
	}
}

// checkTLS checks the TLS settings of the kubelet API.
func (c *checker) checkTLS() {
	k := c.k
	if _, ok := tlsVersions[k.TLSMinVersion]; !ok {
		c.errorf("tlsMinVersion", "unknown value %q; want VersionTLS12 or VersionTLS13", k.TLSMinVersion)
	}
	for i, name := range k.TLSCipherSuites {
		if _, ok := cipherID(name); !ok {
			c.errorf(index("tlsCipherSuites", i), "unknown cipher suite %q", name)
		}
	}
	if (k.TLSCertFile == "") != (k.TLSPrivateKeyFile == "") {
		c.errorf("tlsCertFile", "must be set together with tlsPrivateKeyFile")
	}
}

// cipherID returns the ID of a cipher suite.
func cipherID(name string) (uint16, bool) {
	for _, c := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if c.Name == name {
			return c.ID, true
		}
	}
	return 0, false
}
