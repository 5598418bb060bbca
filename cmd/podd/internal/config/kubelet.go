package config

import (
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
	// MinTLS and Ciphers are those of crypto/tls; empty Ciphers: Go's defaults.
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

func (r *resolving) kubelet() KubeletAPI {
	k, d, f := r.k, defaults(), r.flags
	a := KubeletAPI{
		CertFile: k.TLSCertFile, KeyFile: k.TLSPrivateKeyFile, MinTLS: tlsVersions[k.TLSMinVersion],
		ClientCAFile: k.Authentication.X509.ClientCAFile,
		TokenFile:    f.TokenAuthFile, PolicyFile: f.AuthorizationPolicyFile,
		Anonymous:   orNil(k.Authentication.Anonymous.Enabled, d.Authentication.Anonymous.Enabled),
		AlwaysAllow: k.Authorization.Mode == kubelet.KubeletAuthorizationModeAlwaysAllow,
		Debugging:   orNil(k.EnableDebuggingHandlers, d.EnableDebuggingHandlers),
		SystemLogs:  orNil(k.EnableSystemLogHandler, d.EnableSystemLogHandler),
		Profiling:   orNil(k.EnableProfilingHandler, d.EnableProfilingHandler),
		DebugFlags:  orNil(k.EnableDebugFlagsHandler, d.EnableDebugFlagsHandler),
	}
	r.reviews(&a)
	for _, name := range k.TLSCipherSuites {
		if id, ok := cipher(name); ok {
			a.Ciphers = append(a.Ciphers, id)
		}
	}
	off := f.Port != nil && *f.Port == 0 // in a file 0 means the default
	if orNil(k.EnableServer, d.EnableServer) && !off {
		a.Listen = listen(orZero(k.Address, a.address()), orZero(k.Port, d.Port))
	}
	r.authorization(&a)
	return a
}

// address is the default listen address: only the loopback interface, unless remote
// clients can authenticate.
func (a *KubeletAPI) address() string {
	if a.ClientCAFile == "" && a.TokenFile == "" && !a.TokenReview {
		return "127.0.0.1"
	}
	return "0.0.0.0"
}

// reviews configures reviews in the cluster. A local policy replaces them unless both are
// requested.
func (r *resolving) reviews(a *KubeletAPI) {
	k, d := r.k, defaults()
	if r.flags.Kubeconfig == "" {
		return
	}
	webhook := k.Authorization.Mode == kubelet.KubeletAuthorizationModeWebhook
	if webhook && a.PolicyFile != "" {
		r.add(manifest.Error, "--authorization-policy-file", "authorization mode Webhook has the cluster say what clients may; leave one of them out")
	}
	a.TokenReview = orNil(k.Authentication.Webhook.Enabled, d.Authentication.Webhook.Enabled)
	a.AccessReview = webhook || k.Authorization.Mode == "" && a.PolicyFile == ""
	a.TokenTTL = or(k.Authentication.Webhook.CacheTTL, d.Authentication.Webhook.CacheTTL)
	a.AllowedTTL = or(k.Authorization.Webhook.CacheAuthorizedTTL, d.Authorization.Webhook.CacheAuthorizedTTL)
	a.DeniedTTL = or(k.Authorization.Webhook.CacheUnauthorizedTTL, d.Authorization.Webhook.CacheUnauthorizedTTL)
}

// authorization warns of settings with effects that users may not expect.
func (r *resolving) authorization(a *KubeletAPI) {
	k := r.k
	webhook := k.Authorization.Mode == kubelet.KubeletAuthorizationModeWebhook
	if token := k.Authentication.Webhook.Enabled; r.flags.Kubeconfig == "" && (webhook || token != nil && *token) {
		r.add(manifest.Warning, "", "authentication and authorization by webhook ask a cluster, and without --kubeconfig there is none: the kubelet's API answers root, and those whom --authorization-policy-file lets")
	}
	if a.Listen != "" && a.Anonymous && a.AlwaysAllow {
		r.add(manifest.Warning, "", "anonymous authentication and authorization mode AlwaysAllow: who reaches %s runs commands in every pod", a.Listen)
	}
}

// inForce sets the effective values of settings that the kubelet only supports in a
// cluster.
func (a *KubeletAPI) inForce(k *kubelet.KubeletConfiguration) {
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

// tls checks the TLS settings of the kubelet API.
func (c *checking) tls() {
	k := c.k
	if _, ok := tlsVersions[k.TLSMinVersion]; !ok {
		c.errorf("tlsMinVersion", "%q is not known; want VersionTLS12 or VersionTLS13", k.TLSMinVersion)
	}
	for i, name := range k.TLSCipherSuites {
		if _, ok := cipher(name); !ok {
			c.errorf(index("tlsCipherSuites", i), "%q is not known", name)
		}
	}
	if (k.TLSCertFile == "") != (k.TLSPrivateKeyFile == "") {
		c.errorf("tlsCertFile", "a certificate needs its key and a key its certificate; give tlsPrivateKeyFile too")
	}
}

func cipher(name string) (uint16, bool) {
	for _, c := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if c.Name == name {
			return c.ID, true
		}
	}
	return 0, false
}
