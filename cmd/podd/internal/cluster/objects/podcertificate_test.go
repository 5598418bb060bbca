package objects

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/manifest"
	"podd/manifest/refs"
)

// podCertificateVolume returns a volume with a pod certificate whose key has the type keyType.
func podCertificateVolume(keyType string) v1.VolumeSource {
	return v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{{PodCertificate: &v1.PodCertificateProjection{
		SignerName: "example.com/mesh", KeyType: keyType, MaxExpirationSeconds: new(int32(7200)), CredentialBundlePath: "bundle.pem", UserAnnotations: map[string]string{"example.com/a": "b"},
	}}}}}
}

// certificateRequests returns the PodCertificateRequests, in the order of their creation.
func (l *testResolver) certificateRequests() []*certificates.PodCertificateRequest {
	l.API.Mu.Lock()
	defer l.API.Mu.Unlock()
	return l.requestsLocked()
}

// requestsLocked is like certificateRequests. The caller must hold Mu.
func (l *testResolver) requestsLocked() []*certificates.PodCertificateRequest {
	var all []*certificates.PodCertificateRequest
	for _, o := range l.Objects {
		if r, ok := o.(*certificates.PodCertificateRequest); ok {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *certificates.PodCertificateRequest) int {
		return cmp.Or(len(a.Name)-len(b.Name), strings.Compare(a.Name, b.Name))
	})
	return all
}

// issue returns a copy of a request with an issued certificate. The certificate is valid for two
// hours, and its beginRefreshAt is in one hour.
func issue(t *testing.T, r *certificates.PodCertificateRequest) *certificates.PodCertificateRequest {
	t.Helper()
	request, err := x509.ParseCertificateRequest(r.Spec.StubPKCS10Request)
	if err != nil || request.CheckSignature() != nil {
		t.Fatalf("got PKCS #10 request %v, error %v; want one with a valid signature", request, err)
	}
	_, ca, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	leaf := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now, NotAfter: now.Add(2 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, leaf, leaf, request.PublicKey, ca)
	if err != nil {
		t.Fatal(err)
	}
	r = decide(r, "Issued")
	r.Status.CertificateChain = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(d)} }
	r.Status.NotBefore, r.Status.BeginRefreshAt, r.Status.NotAfter = at(0), at(time.Hour), at(2*time.Hour)
	return r
}

// decide returns a copy of a request with a true condition.
func decide(r *certificates.PodCertificateRequest, condition string) *certificates.PodCertificateRequest {
	r = r.DeepCopy()
	r.Status.Conditions = []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue, Reason: "Because", Message: "of the key\n"}}
	return r
}

// A certificateTest is a node with a pod that has a pod certificate.
type certificateTest struct {
	*testResolver
	pod    *v1.Pod
	events *[]string
}

// runCertificate starts a node with a pod that has a pod certificate, lets 1 s pass and calls test.
func runCertificate(t *testing.T, keyType string, test func(*certificateTest)) {
	var events []string
	prepare := func(l *testResolver, o *Options) {
		o.OnPodWarning = func(pod *v1.Pod, reason, message string) {
			events = append(events, fmt.Sprintf("%s %s: %s", pod.Name, reason, message))
		}
	}
	runResolver(t, prepare, func(l *testResolver) {
		c := &certificateTest{l, clustertest.NewPodWithVolumes("a", podCertificateVolume(keyType)), &events}
		l.Change(func() {
			l.PutObject("serviceaccounts", &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "robot", UID: "robot-uid"}}, "ADDED")
			l.PutPod(c.pod, "ADDED")
		})
		clustertest.Advance(time.Second)
		test(c)
	})
}

func (c *certificateTest) ref() manifest.ObjectRef { return refs.PodCertificateRef(c.pod, "v0", 0) }

// certificate returns the published certificate, or nil.
func (c *certificateTest) certificate() *manifest.PodCertificate {
	return c.objects().Cluster.PodCertificates[c.ref().NamespacedName]
}

// put stores a changed request.
func (c *certificateTest) put(r *certificates.PodCertificateRequest) {
	c.Change(func() { c.PutObject("podcertificaterequests", r, "MODIFIED") })
}

// check checks the published reason why the certificate is missing, and that the metric counts one
// certificate in the given state.
func (c *certificateTest) check(step, state string, want manifest.MissingObject) {
	c.t.Helper()
	if got := c.objects().Cluster.Missing[c.ref()]; got != want {
		c.t.Errorf("%s: got missing object %+v, want %+v", step, got, want)
	}
	if got, want := c.resolver.CountPodCertificates(), map[PodCertificateState]int{{Signer: "example.com/mesh", State: state}: 1}; !maps.Equal(got, want) {
		c.t.Errorf("%s: got states %v, want %v", step, got, want)
	}
}

// TestPodCertificate checks the content of a request, the published certificate, and the refresh of
// the certificate with a new key.
func TestPodCertificate(t *testing.T) {
	runCertificate(t, "ECDSAP256", func(c *certificateTest) {
		all := c.certificateRequests()
		if len(all) != 1 {
			t.Fatalf("got %d requests, want 1", len(all))
		}
		spec, owner := all[0].Spec, all[0].OwnerReferences
		if spec.SignerName != "example.com/mesh" || spec.PodName != "a" || spec.PodUID != "uid-a" || spec.ServiceAccountName != "robot" || spec.ServiceAccountUID != "robot-uid" ||
			spec.NodeName != "n1" || spec.NodeUID != c.StoredNode().UID || *spec.MaxExpirationSeconds != 7200 || spec.UnverifiedUserAnnotations["example.com/a"] != "b" ||
			len(owner) != 1 || owner[0].UID != "uid-a" || owner[0].Kind != "Pod" {
			t.Errorf("got request %+v with owners %+v; want one of pod a, Node n1 and service account robot for the signer example.com/mesh, with the pod as owner", spec, owner)
		}
		waiting := manifest.MissingObject{Message: fmt.Sprintf(`signer "example.com/mesh" has not issued the certificate of PodCertificateRequest default/%s yet`, all[0].Name), WillExist: true}
		c.check("requested", "not_yet_issued", waiting)
		clustertest.Advance(4 * time.Minute)
		waiting.WillExist = false
		c.check("requested 4 minutes ago", "not_yet_issued", waiting)
		c.put(issue(t, all[0]))
		c.check("issued", "fresh", manifest.MissingObject{})
		first := c.certificate()
		if first == nil || !bytes.HasPrefix(first.Key, []byte("-----BEGIN PRIVATE KEY")) || !bytes.HasPrefix(first.Chain, []byte("-----BEGIN CERTIFICATE")) {
			t.Fatalf("issued: got certificate %+v, want one with a key and a chain in PEM", first)
		}
		clustertest.Advance(59 * time.Minute)
		if n := len(c.certificateRequests()); n != 1 {
			t.Errorf("after 59 minutes: got %d requests, want 1", n)
		}
		clustertest.Advance(8 * time.Minute)
		if all = c.certificateRequests(); len(all) != 2 || bytes.Equal(all[0].Spec.StubPKCS10Request, all[1].Spec.StubPKCS10Request) {
			t.Fatalf("after 67 minutes: got %d requests, want 2 requests with different keys", len(all))
		}
		if c.certificate() != first {
			t.Error("before the refresh is complete: got another certificate, want the first")
		}
		c.put(issue(t, all[1]))
		if second := c.certificate(); second == nil || second == first || bytes.Equal(second.Key, first.Key) {
			t.Errorf("after the refresh: got %v, want a certificate with a new key", second)
		}
		c.check("refreshed", "fresh", manifest.MissingObject{})
		if len(*c.events) > 0 {
			t.Errorf("got events %q, want none", *c.events)
		}
		c.Change(func() { c.PutPod(c.pod, "DELETED") })
		if got := c.resolver.CountPodCertificates(); len(got) > 0 || c.certificate() != nil {
			t.Errorf("after the deletion of the pod: got states %v, certificate %v; want no states, no certificate", got, c.certificate())
		}
	})
}

// TestPodCertificate_Refused checks that podd reports a denied or failed request, for the first
// certificate and for a refresh, and does not repeat the request.
func TestPodCertificate_Refused(t *testing.T) {
	for condition, verb := range map[string]string{"Denied": "was denied", "Failed": "failed"} {
		for _, isRefresh := range []bool{false, true} {
			runCertificate(t, "ED25519", func(c *certificateTest) {
				if isRefresh {
					c.put(issue(t, c.certificateRequests()[0]))
					clustertest.Advance(70 * time.Minute)
				}
				all := c.certificateRequests()
				last := all[len(all)-1]
				c.put(decide(last, condition))
				text := fmt.Sprintf(`PodCertificateRequest default/%s %s, reason="Because", message="of the key\n"`, last.Name, verb)
				want := manifest.MissingObject{Message: text, Remedy: "delete the pod to request another certificate"}
				c.check(condition, strings.ToLower(condition), want)
				clustertest.Advance(time.Hour)
				c.check(condition+" an hour ago", strings.ToLower(condition), want)
				if n := len(c.certificateRequests()); n != len(all) {
					t.Errorf("%s, refresh %t: got %d requests after an hour, want %d", condition, isRefresh, n, len(all))
				}
				if want := []string{"a " + condition + ": " + text}; !slices.Equal(*c.events, want) {
					t.Errorf("%s, refresh %t: got events %q, want %q", condition, isRefresh, *c.events, want)
				}
			})
		}
	}
}

// TestPodCertificate_Overdue checks the events and states of a certificate that expires because the
// API server rejects the requests for its refresh.
func TestPodCertificate_Overdue(t *testing.T) {
	runCertificate(t, "ED25519", func(c *certificateTest) {
		c.put(issue(t, c.certificateRequests()[0]))
		first := c.certificate()
		clustertest.Advance(80 * time.Minute)
		c.check("80 minutes after the issue", "overdue_for_refresh", manifest.MissingObject{})
		c.Change(func() { // the request is deleted, and later requests are rejected
			c.PutObject("podcertificaterequests", c.requestsLocked()[1], "DELETED")
			c.Fault = func(q *http.Request) (*http.Response, error) {
				if q.Method == "POST" && strings.HasSuffix(q.URL.Path, "/podcertificaterequests") {
					return clustertest.ErrorResponse(apierrors.NewForbidden(schema.GroupResource{Resource: "podcertificaterequests"}, "", fmt.Errorf("no"))), nil
				}
				return nil, nil
			}
		})
		clustertest.Advance(45 * time.Minute)
		c.check("125 minutes after the issue", "expired", manifest.MissingObject{})
		if want := []string{"a CertificateOverdueForRefresh: PodCertificate refresh overdue", "a CertificateExpired: PodCertificate expired"}; !slices.Equal(*c.events, want) {
			t.Errorf("got events %q, want %q", *c.events, want)
		}
		if c.certificate() != first {
			t.Error("125 minutes after the issue: got another certificate, want the expired one")
		}
		c.Change(func() { c.Fault = nil })
		clustertest.Advance(time.Minute)
		all := c.certificateRequests()
		c.put(issue(t, all[len(all)-1]))
		c.check("refreshed", "fresh", manifest.MissingObject{})
	})
}

// TestPodCertificate_Errors checks that podd reports the error of a request, and that podd creates
// another request if the first one was deleted or has an invalid status.
func TestPodCertificate_Errors(t *testing.T) {
	runCertificate(t, "ED25519", func(c *certificateTest) {
		c.Change(func() {
			c.PutObject("podcertificaterequests", c.requestsLocked()[0], "DELETED")
			c.Fault = func(q *http.Request) (*http.Response, error) {
				if q.Method == "POST" && strings.HasSuffix(q.URL.Path, "/podcertificaterequests") {
					return clustertest.ErrorResponse(apierrors.NewGenericServerResponse(404, "post", schema.GroupResource{}, "", "", 0, false)), nil
				}
				return nil, nil
			}
		})
		clustertest.Advance(time.Second)
		got := c.objects().Cluster.Missing[c.ref()].Message
		if want := "; the API server must serve PodCertificateRequests in certificates.k8s.io/v1, which"; !strings.Contains(got, want) {
			t.Errorf("API server without PodCertificateRequests: got message %q, want one that contains %q", got, want)
		}
	})
	runCertificate(t, "RSA1", func(c *certificateTest) {
		c.check("unsupported key type", "not_yet_issued", manifest.MissingObject{Message: `requesting a certificate of signer "example.com/mesh": key type "RSA1" is not supported; set keyType to RSA3072, RSA4096, ECDSAP256, ECDSAP384, ECDSAP521 or ED25519`})
	})
	runCertificate(t, "ED25519", func(c *certificateTest) {
		first := c.certificateRequests()[0]
		c.Change(func() { c.PutObject("podcertificaterequests", first, "DELETED") })
		c.check("deleted", "not_yet_issued", manifest.MissingObject{Message: fmt.Sprintf(`requesting a certificate of signer "example.com/mesh": PodCertificateRequest default/%s was deleted`, first.Name)})
		clustertest.Advance(time.Second)
		if all := c.certificateRequests(); len(all) != 1 || all[0].Name == first.Name {
			t.Errorf("1s after the deletion: got %d requests, want 1 with a new name", len(all))
		}
		invalid := decide(c.certificateRequests()[0], "Issued")
		c.put(invalid)
		clustertest.Advance(time.Hour)
		if n := len(c.certificateRequests()); n != 2 {
			t.Errorf("an hour after an Issued condition without a certificate: got %d requests, want 2", n)
		}
	})
}
