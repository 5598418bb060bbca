package config

import (
	"crypto/tls"
	"net"
	"slices"
	"time"

	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/manifest"
)

// KubeletAPI is how podd serves the kubelet's API.
type KubeletAPI struct {
	// Listen is its address as "host:port"; "" is off.
	Listen string
	// CertFile and KeyFile are what it shows to clients; "": podd's own.
	CertFile, KeyFile string
	// MinTLS and Ciphers are crypto/tls's; no cipher: those of Go.
	MinTLS  uint16
	Ciphers []uint16
	// ClientCAFile vouches for clients, beside podd's own authority; "": none.
	ClientCAFile string
	// TokenFile has bearer tokens and PolicyFile what users may; "": none.
	TokenFile, PolicyFile string
	// TokenReview has the cluster tell whose any other token is, for TokenTTL, and
	// AccessReview what users may, for AllowedTTL and DeniedTTL.
	TokenReview, AccessReview       bool
	TokenTTL, AllowedTTL, DeniedTTL time.Duration
	// Anonymous lets those in who show nothing, AlwaysAllow allows everything
	// to all who are in.
	Anonymous, AlwaysAllow bool
	// Debugging serves exec, logs and the like, SystemLogs /var/log, Profiling
	// pprof, DebugFlags the level of the log.
	Debugging, SystemLogs, Profiling, DebugFlags bool
}

// tlsVersions are those of tlsMinVersion.
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
	off := f.Port != nil && *f.Port == 0 // in a file 0 is the default
	if orNil(k.EnableServer, d.EnableServer) && !off {
		a.Listen = listen(orZero(k.Address, a.address()), orZero(k.Port, d.Port))
	}
	r.authorization(&a)
	return a
}

// address is where to listen when the user says nothing: on this machine alone,
// unless somebody from elsewhere could show who they are.
func (a *KubeletAPI) address() string {
	if a.ClientCAFile == "" && a.TokenFile == "" && !a.TokenReview {
		return "127.0.0.1"
	}
	return "0.0.0.0"
}

// reviews are the cluster's. A policy of the node's own is instead of them, unless
// both were asked for.
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

// authorization says what who wrote these would not expect.
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

// inForce is what is served of what a kubelet serves with its cluster's help.
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

// tls checks what the kubelet's API is served with.
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
