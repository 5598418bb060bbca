package config

import (
	"cmp"
	"crypto/tls"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/manifest"
)

// KubeletAPI configures the kubelet API.
type KubeletAPI struct {
	// Address is the listen address as "host:port"; "" disables the API.
	Address string
	// CertFile and KeyFile are the files with the serving certificate and its private key. If
	// they are "", podd issues a certificate.
	CertFile, KeyFile string
	// MinTLS is the minimum TLS version as in crypto/tls.
	MinTLS uint16
	// Ciphers contains the IDs of cipher suites as in crypto/tls. If it is empty, Go's default
	// cipher suites are used.
	Ciphers []uint16
	// Curves contains the key exchange mechanisms as in crypto/tls. If it is empty, Go's
	// defaults are used.
	Curves []tls.CurveID
	// ClientCAFile is the file with the CA certificates that verify client certificates, in
	// addition to podd's own CA; may be "".
	ClientCAFile string
	// TokenFile is the file with bearer tokens; may be "".
	TokenFile string
	// PolicyFile is the file with RBAC roles and role bindings; may be "".
	PolicyFile string
	// EnableTokenReview is set if the cluster authenticates the bearer tokens that TokenFile does
	// not contain. Results are cached for TokenTTL.
	EnableTokenReview bool
	TokenTTL          time.Duration
	// EnableAccessReview is set if the cluster authorizes requests. Results are cached for
	// AllowedTTL if the request is allowed, and otherwise for DeniedTTL. 0 disables a cache.
	EnableAccessReview    bool
	AllowedTTL, DeniedTTL time.Duration
	// AllowAnonymous is set if clients without credentials are authenticated as system:anonymous.
	AllowAnonymous bool
	// AlwaysAllow is set if every authenticated request is authorized.
	AlwaysAllow bool
	// EnableDebugging enables the handlers for logs, exec, attach and port-forward.
	EnableDebugging bool
	// EnableSystemLogs enables the handler for the files in /var/log.
	EnableSystemLogs bool
	// EnableSystemLogQuery enables queries for the logs of services. It is set only if
	// EnableSystemLogs is set.
	EnableSystemLogQuery bool
	// EnableProfiling enables the handlers of pprof.
	EnableProfiling bool
	// EnableDebugFlags enables the handler that changes the log level.
	EnableDebugFlags bool
}

// tlsVersions maps the values of tlsMinVersion to versions in crypto/tls.
var tlsVersions = map[string]uint16{
	"": tls.VersionTLS12, "VersionTLS10": tls.VersionTLS10, "VersionTLS11": tls.VersionTLS11,
	"VersionTLS12": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13,
}

// resolveKubeletAPI returns the configuration of the kubelet API.
func (r *resolver) resolveKubeletAPI() KubeletAPI {
	k, d, f := r.kubelet, newDefaults(), r.flags
	a := KubeletAPI{
		CertFile: k.TLSCertFile, KeyFile: k.TLSPrivateKeyFile, MinTLS: tlsVersions[k.TLSMinVersion],
		ClientCAFile: k.Authentication.X509.ClientCAFile,
		TokenFile:    f.TokenAuthFile, PolicyFile: f.AuthorizationPolicyFile,
		AllowAnonymous:       derefOr(k.Authentication.Anonymous.Enabled, d.Authentication.Anonymous.Enabled),
		AlwaysAllow:          k.Authorization.Mode == kubelet.KubeletAuthorizationModeAlwaysAllow,
		EnableDebugging:      derefOr(k.EnableDebuggingHandlers, d.EnableDebuggingHandlers),
		EnableSystemLogs:     derefOr(k.EnableSystemLogHandler, d.EnableSystemLogHandler),
		EnableSystemLogQuery: derefOr(k.EnableSystemLogQuery, d.EnableSystemLogQuery),
		EnableProfiling:      derefOr(k.EnableProfilingHandler, d.EnableProfilingHandler),
		EnableDebugFlags:     derefOr(k.EnableDebugFlagsHandler, d.EnableDebugFlagsHandler),
	}
	r.resolveReviews(&a)
	for _, name := range k.TLSCipherSuites {
		if id, ok := findCipher(name); ok {
			a.Ciphers = append(a.Ciphers, id)
		}
	}
	for _, n := range k.TLSCurvePreferences {
		if id, ok := findCurve(n); ok {
			a.Curves = append(a.Curves, id)
		}
	}
	if derefOr(k.EnableServer, d.EnableServer) {
		a.Address = listenAddress(cmp.Or(k.Address, a.defaultAddress()), valueOr(r.merged, "port", k.Port, d.Port))
	}
	r.warnAuthorization(&a)
	r.warnDisabledHandlers(&a)
	return a
}

// defaultAddress returns the default IP address to listen on. The API listens on all
// interfaces if remote clients can authenticate, and otherwise only on loopback.
func (a *KubeletAPI) defaultAddress() string {
	if a.ClientCAFile == "" && a.TokenFile == "" && !a.EnableTokenReview {
		return "127.0.0.1"
	}
	return "0.0.0.0"
}

// resolveReviews configures authentication and authorization by the cluster. Without --kubeconfig
// it does nothing. If PolicyFile is set, the cluster does not authorize requests. It is an error to
// set both PolicyFile and authorization mode Webhook.
func (r *resolver) resolveReviews(a *KubeletAPI) {
	k, d := r.kubelet, newDefaults()
	if r.flags.Kubeconfig == "" {
		return
	}
	usesWebhook := k.Authorization.Mode == kubelet.KubeletAuthorizationModeWebhook
	if usesWebhook && a.PolicyFile != "" {
		r.addProblem(manifest.Error, "--authorization-policy-file", "cannot be used together with authorization mode Webhook; remove one of them")
	}
	a.EnableTokenReview = derefOr(k.Authentication.Webhook.Enabled, d.Authentication.Webhook.Enabled)
	a.EnableAccessReview = usesWebhook || k.Authorization.Mode == "" && a.PolicyFile == ""
	a.TokenTTL = r.duration("authentication.webhook.cacheTTL", k.Authentication.Webhook.CacheTTL, d.Authentication.Webhook.CacheTTL)
	a.AllowedTTL = r.duration("authorization.webhook.cacheAuthorizedTTL", k.Authorization.Webhook.CacheAuthorizedTTL, d.Authorization.Webhook.CacheAuthorizedTTL)
	a.DeniedTTL = r.duration("authorization.webhook.cacheUnauthorizedTTL", k.Authorization.Webhook.CacheUnauthorizedTTL, d.Authorization.Webhook.CacheUnauthorizedTTL)
}

// warnAuthorization adds warnings for settings of authentication and authorization that have
// no effect or are dangerous. With --runonce, podd does not serve the kubelet API, and
// warnIgnoredSettings returns the warnings.
func (r *resolver) warnAuthorization(a *KubeletAPI) {
	k := r.kubelet
	if k.RunOnce {
		return
	}
	usesWebhook := k.Authorization.Mode == kubelet.KubeletAuthorizationModeWebhook
	if token := k.Authentication.Webhook.Enabled; r.flags.Kubeconfig == "" && (usesWebhook || token != nil && *token) {
		r.addProblem(manifest.Warning, "", "webhook authentication and authorization have no effect without --kubeconfig: only root and clients that --authorization-policy-file authorizes can use the kubelet API")
	}
	if a.Address != "" && a.AllowAnonymous && a.AlwaysAllow {
		r.addProblem(manifest.Warning, "", "anonymous authentication together with authorization mode AlwaysAllow: every client that can reach %s can run commands in every pod", a.Address)
	}
}

// warnDisabledHandlers adds a warning for each setting that is enabled but has no effect, because another
// setting disables the handlers that it concerns. With --runonce, warnIgnoredSettings returns the
// warnings.
func (r *resolver) warnDisabledHandlers(a *KubeletAPI) {
	if r.kubelet.RunOnce {
		return
	}
	reason := ""
	switch {
	case a.Address == "":
		reason = "podd does not serve the kubelet API"
	case !a.EnableDebugging:
		reason = "enableDebuggingHandlers is false"
	}
	if reason != "" && a.EnableSystemLogQuery {
		r.warnf("enableSystemLogQuery", "ignored, because %s", reason)
	}
	if reason == "" && !a.EnableProfiling {
		reason = "enableProfilingHandler is false"
	}
	if reason != "" && r.kubelet.EnableContentionProfiling {
		r.warnf("enableContentionProfiling", "ignored, because %s", reason)
	}
}

// setEffectiveValues sets the fields of k that configure the kubelet API to the values in effect.
// The values in effect differ from the configured values, for example, if podd runs without a
// cluster.
func (a *KubeletAPI) setEffectiveValues(k *kubelet.KubeletConfiguration) {
	k.EnableServer = new(a.Address != "")
	k.Authentication.Webhook.Enabled = new(a.EnableTokenReview)
	switch {
	case a.EnableAccessReview:
		k.Authorization.Mode = kubelet.KubeletAuthorizationModeWebhook
	case !a.AlwaysAllow:
		k.Authorization.Mode = ""
	}
	if host, _, err := net.SplitHostPort(a.Address); err == nil {
		k.Address = host
	}
}

// checkTLS checks the TLS settings of the kubelet API.
func (c *checker) checkTLS() {
	k := c.kubelet
	if _, ok := tlsVersions[k.TLSMinVersion]; !ok {
		c.errorf("tlsMinVersion", "unknown value %q; must be VersionTLS12 or VersionTLS13", k.TLSMinVersion)
	}
	for i, name := range k.TLSCipherSuites {
		if _, ok := findCipher(name); !ok {
			c.errorf(joinIndex("tlsCipherSuites", i), "unknown cipher suite %q", name)
		}
	}
	for i, n := range k.TLSCurvePreferences {
		at := joinIndex("tlsCurvePreferences", i)
		if _, ok := findCurve(n); !ok {
			c.errorf(at, "unknown key exchange mechanism %d; must be a CurveID of Go's package crypto/tls, such as %d for %s", n, tls.X25519, tls.X25519)
		} else if slices.Contains(k.TLSCurvePreferences[:i], n) {
			c.errorf(at, "duplicate value %d; remove it", n)
		}
	}
	if (k.TLSCertFile == "") != (k.TLSPrivateKeyFile == "") {
		c.errorf("tlsCertFile", "must be set together with tlsPrivateKeyFile")
	}
}

// findCipher returns the ID of the cipher suite with a name, such as
// TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256. ok reports whether crypto/tls contains the suite.
func findCipher(name string) (id uint16, ok bool) {
	for _, c := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if c.Name == name {
			return c.ID, true
		}
	}
	return 0, false
}

// findCurve returns the key exchange mechanism with a number. ok reports whether crypto/tls contains
// the mechanism.
func findCurve(n int32) (id tls.CurveID, ok bool) {
	if n <= 0 || n > math.MaxUint16 {
		return 0, false
	}
	id = tls.CurveID(n)
	return id, !strings.HasPrefix(id.String(), "CurveID(")
}
