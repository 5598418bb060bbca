//go:build e2e

package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const inDefault = "/api/v1/namespaces/default/"

// create creates an object, which is deleted at the end of the test, and returns the created
// object.
func create[T any](t *testing.T, path, name string, object *T) *T {
	t.Helper()
	made := new(T)
	if err := plane.do(http.MethodPost, path, object, made); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = plane.do(http.MethodDelete, path+"/"+name, &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, nil)
	})
	return made
}

func objectMeta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// addVolume adds a volume and mounts it at /name.
func addVolume(p *v1.Pod, name string, source v1.VolumeSource) {
	p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: name, VolumeSource: source})
	p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, v1.VolumeMount{Name: name, MountPath: "/" + name})
}

func configVolume(name string) v1.VolumeSource {
	return v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: name}}}
}

// boundPod returns a pod that is bound to a node and sleeps.
func boundPod(node, name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: objectMeta(name), Spec: v1.PodSpec{
		NodeName: node, HostNetwork: true, ServiceAccountName: "robot", AutomountServiceAccountToken: new(false), TerminationGracePeriodSeconds: new(int64(1)),
		Containers: []v1.Container{{Name: "main", Image: "podd.test/busybox:1", Command: []string{"sleep", "1000000"}}},
	}}
}

// createServiceAccount creates the service account robot, unless it exists.
func createServiceAccount(t *testing.T) {
	err := plane.do(http.MethodPost, inDefault+"serviceaccounts", &v1.ServiceAccount{ObjectMeta: objectMeta("robot")}, nil)
	if err != nil && !strings.Contains(err.Error(), "AlreadyExists") {
		t.Fatal(err)
	}
}

// untilOutput waits until a command in a pod prints the text want.
func (a *agent) untilOutput(pod, want string, command ...string) {
	a.t.Helper()
	a.eventually(fmt.Sprintf("%s in %s prints %q", command, pod, want), func() error {
		out, err := a.verb(append([]string{"exec", pod, "--"}, command...)...)
		if err != nil || strings.TrimSpace(out) != want {
			return fmt.Errorf("got output %q, error %v; want %q", out, err, want)
		}
		return nil
	})
}

// untilWaiting waits until a container of a pod is waiting with the reason, and podd why prints the
// text.
func (a *agent) untilWaiting(pod, reason, text string) {
	a.t.Helper()
	a.eventually(fmt.Sprintf("%s waits: %s %q", pod, reason, text), func() error {
		out, err := a.verb("get", "pods", pod, "-o", "json")
		p := &v1.Pod{}
		if err == nil {
			err = json.Unmarshal([]byte(out), p)
		}
		if err != nil {
			return errors.New(out)
		}
		for _, s := range p.Status.ContainerStatuses {
			if w := s.State.Waiting; w != nil && w.Reason == reason {
				if why, _ := a.verb("why", pod); strings.Contains(why, text) {
					return nil
				}
			}
		}
		return errors.New(out)
	})
}

// tokenUser returns the name of the user that the API server derives from a token.
func tokenUser(t *testing.T, token string) string {
	t.Helper()
	review := &authentication.TokenReview{TypeMeta: metav1.TypeMeta{Kind: "TokenReview", APIVersion: "authentication.k8s.io/v1"}}
	review.Spec.Token = token
	body, _ := json.Marshal(review)
	resp, err := plane.admin.Post(plane.url+"/apis/authentication.k8s.io/v1/tokenreviews", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if err := json.Unmarshal(text, review); err != nil {
		t.Fatalf("decoding the TokenReview: %v: %s", err, text)
	}
	return review.Status.User.Username
}

// TestObjects checks that a pod gets objects from the cluster, with the permissions of a node:
// environment variables, files that are updated when their objects change, a token of the pod's
// service account, and the environment variables of Services.
func TestObjects(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "o1").start()
	a.untilReady()
	createServiceAccount(t)
	create(t, inDefault+"configmaps", "o1-conf", &v1.ConfigMap{ObjectMeta: objectMeta("o1-conf"), Data: map[string]string{"a": "1"}})
	create(t, inDefault+"secrets", "o1-env", &v1.Secret{ObjectMeta: objectMeta("o1-env"), StringData: map[string]string{"WORD": "hush"}})
	service := create(t, inDefault+"services", "o1-db", &v1.Service{ObjectMeta: objectMeta("o1-db"), Spec: v1.ServiceSpec{Ports: []v1.ServicePort{{Port: 5432, TargetPort: intstr.FromInt32(5432)}}}})
	create(t, "/apis/node.k8s.io/v1/runtimeclasses", "o1-runc", &nodev1.RuntimeClass{ObjectMeta: objectMeta("o1-runc"), Handler: "runc"})

	p := boundPod(a.node, "o1-all")
	p.Spec.RuntimeClassName = new("o1-runc")
	p.Spec.SecurityContext = &v1.PodSecurityContext{RunAsUser: new(int64(1000)), FSGroup: new(int64(2000))}
	p.Spec.Containers[0].EnvFrom = []v1.EnvFromSource{{SecretRef: &v1.SecretEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "o1-env"}}}}
	p.Spec.Containers[0].Env = []v1.EnvVar{{Name: "DB", Value: "$(O1_DB_SERVICE_HOST)"}}
	addVolume(p, "conf", configVolume("o1-conf"))
	addVolume(p, "api", v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
		{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(3607))}},
		{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "o1-conf"}, Items: []v1.KeyToPath{{Key: "a", Path: "ca.crt"}}}},
		{DownwardAPI: &v1.DownwardAPIProjection{Items: []v1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}}},
	}}})
	began := time.Now()
	create(t, inDefault+"pods", p.Name, p)
	a.untilRunning(p.Name)
	t.Logf("the pod is running %s after it was bound", time.Since(began).Round(time.Millisecond))
	a.untilOutput(p.Name, "hush "+service.Spec.ClusterIP+" "+service.Spec.ClusterIP+" 443",
		"sh", "-c", "echo $WORD $DB $O1_DB_SERVICE_HOST $KUBERNETES_SERVICE_PORT_HTTPS")
	a.untilOutput(p.Name, "1", "cat", "/conf/a")
	a.untilOutput(p.Name, "default 1", "sh", "-c", "echo $(cat /api/namespace) $(cat /api/ca.crt)")
	a.untilOutput(p.Name, "1000 2000 640", "stat", "-L", "-c", "%u %g %a", "/api/token")
	a.untilOutput(p.Name, "tmpfs", "sh", "-c", "grep ' /api ' /proc/mounts | cut -d' ' -f1")
	token, err := a.verb("exec", p.Name, "--", "cat", "/api/token")
	if err != nil || tokenUser(t, strings.TrimSpace(token)) != "system:serviceaccount:default:robot" {
		t.Errorf("token: got the user %q, error %v; want system:serviceaccount:default:robot", tokenUser(t, strings.TrimSpace(token)), err)
	}
	if err := plane.do(http.MethodPatch, inDefault+"configmaps/o1-conf", map[string]any{"data": map[string]string{"a": "2"}}, nil); err != nil {
		t.Fatal(err)
	}
	a.untilOutput(p.Name, "2", "cat", "/conf/a")
	// A restart of podd does not affect the volumes.
	a.kill()
	a.start()
	a.untilOutput(p.Name, "2", "cat", "/conf/a")
	if n := a.countInLog("hush") + a.countInLog(strings.TrimSpace(token)); n > 0 {
		t.Errorf("log: got the Secret's data or the token %d times, want them never", n)
	}
}

// TestObjects_Missing checks that a pod waits for missing objects with the kubelet's messages,
// and starts when they are created.
func TestObjects_Missing(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "o2").start()
	a.untilReady()
	createServiceAccount(t)
	mounts, reads := boundPod(a.node, "o2-mounts"), boundPod(a.node, "o2-reads")
	addVolume(mounts, "conf", configVolume("o2-conf"))
	reads.Spec.Containers[0].Env = []v1.EnvVar{{Name: "A", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "o2-env"}, Key: "a"}}}}
	create(t, inDefault+"pods", mounts.Name, mounts)
	create(t, inDefault+"pods", reads.Name, reads)
	a.untilWaiting(mounts.Name, "ContainerCreating", `configmap "o2-conf" not found`)
	a.untilWaiting(reads.Name, "CreateContainerConfigError", `secret "o2-env" not found`)
	create(t, inDefault+"configmaps", "o2-conf", &v1.ConfigMap{ObjectMeta: objectMeta("o2-conf"), Data: map[string]string{"a": "1"}})
	create(t, inDefault+"secrets", "o2-env", &v1.Secret{ObjectMeta: objectMeta("o2-env")})
	a.untilOutput(mounts.Name, "1", "cat", "/conf/a")
	a.untilWaiting(reads.Name, "CreateContainerConfigError", `couldn't find key a in Secret default/o2-env`)
	if err := plane.do(http.MethodPatch, inDefault+"secrets/o2-env", map[string]any{"stringData": map[string]string{"a": "yes"}}, nil); err != nil {
		t.Fatal(err)
	}
	a.untilOutput(reads.Name, "yes", "sh", "-c", "echo $A")
}

// TestObjects_UnboundClaim checks that a claim is mounted only after the cluster has bound it.
func TestObjects_UnboundClaim(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "o3").start()
	a.untilReady()
	createServiceAccount(t)
	data := filepath.Join(a.dir, "data")
	if err := os.MkdirAll(data, 0o777); err != nil {
		t.Fatal(err)
	}
	size := v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Mi")}
	modes := []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	claim := create(t, inDefault+"persistentvolumeclaims", "o3-data", &v1.PersistentVolumeClaim{ObjectMeta: objectMeta("o3-data"), Spec: v1.PersistentVolumeClaimSpec{
		VolumeName: "o3-volume", StorageClassName: new(""), AccessModes: modes, Resources: v1.VolumeResourceRequirements{Requests: size},
	}})
	p := boundPod(a.node, "o3-app")
	addVolume(p, "data", v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "o3-data"}})
	create(t, inDefault+"pods", p.Name, p)
	a.untilWaiting(p.Name, "ContainerCreating", "has non-bound phase")
	create(t, "/api/v1/persistentvolumes", "o3-volume", &v1.PersistentVolume{ObjectMeta: objectMeta("o3-volume"), Spec: v1.PersistentVolumeSpec{
		Capacity: size, AccessModes: modes, PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimRetain,
		ClaimRef:               &v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "default", Name: "o3-data", UID: claim.UID},
		PersistentVolumeSource: v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: data}},
	}})
	// The test sets the phase because no controller is running.
	if err := plane.do(http.MethodPatch, inDefault+"persistentvolumeclaims/o3-data/status", map[string]any{"status": map[string]any{"phase": "Bound"}}, nil); err != nil {
		t.Fatal(err)
	}
	a.untilOutput(p.Name, "", "touch", "/data/here")
	if _, err := os.Stat(filepath.Join(data, "here")); err != nil {
		t.Error(err)
	}
}
