package mirror

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/manifest"
)

func TestNew(t *testing.T) {
	static := clustertest.NewStaticPod(t, clustertest.WebManifest)
	m := New(static, clustertest.NewNodeWithUID("u1"))
	hash := static.Annotations[manifest.AnnotationConfigHash]
	if m.Name != "web-n1" || m.UID != "" || m.Spec.NodeName != "n1" || m.Labels["app"] != "web" || hash == "" ||
		m.Annotations[manifest.AnnotationConfigHash] != hash || m.Annotations[manifest.AnnotationConfigMirror] != hash ||
		m.Annotations[manifest.AnnotationConfigSource] != "file" || m.Annotations[manifest.AnnotationConfigSeen] == "" {
		t.Errorf("got mirror pod %+v, want one for Node n1 with the name, labels and hash of the static pod, the source \"file\" and no UID", m)
	}
	if o := metav1.GetControllerOf(m); o == nil || o.APIVersion != "v1" || o.Kind != "Node" || o.Name != "n1" || o.UID != "u1" || o.BlockOwnerDeletion != nil {
		t.Errorf("got owner %+v, want the Node n1 with UID u1, without blockOwnerDeletion", o)
	}
	if IsMirror(static) || !IsStatic(static) {
		t.Errorf("New modified the static pod: IsMirror %t, IsStatic %t; want false and true", IsMirror(static), IsStatic(static))
	}
	for name, test := range map[string]struct {
		node *v1.Node
		want bool
	}{
		"owner":        {clustertest.NewNodeWithUID("u1"), true},
		"no Node":      {nil, true},
		"another Node": {clustertest.NewNodeWithUID("u2"), false},
	} {
		if got := IsMirrorOf(m, static, test.node); got != test.want {
			t.Errorf("IsMirrorOf, %s: got %t, want %t", name, got, test.want)
		}
	}
	if IsMirrorOf(m, clustertest.NewStaticPod(t, clustertest.WebManifest+"  hostNetwork: true\n"), clustertest.NewNodeWithUID("u1")) {
		t.Error("IsMirrorOf, changed static pod: got true, want false")
	}
}

// TestNew_LocalRefs checks that New removes references to other objects, because the API
// server rejects them in a mirror pod, and lists the references in an annotation.
func TestNew_LocalRefs(t *testing.T) {
	static := clustertest.NewStaticPod(t, `
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  serviceAccountName: robot
  priority: 7
  imagePullSecrets: [{name: pull}]
  initContainers:
  - {name: init, image: i, envFrom: [{secretRef: {name: env}}, {configMapRef: {name: conf}}]}
  containers:
  - name: main
    image: i
    env:
    - {name: A, value: "1"}
    - {name: B, valueFrom: {configMapKeyRef: {name: conf, key: k}}}
    - {name: C, valueFrom: {secretKeyRef: {name: env, key: k}}}
    - {name: D, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    volumeMounts:
    - {name: conf, mountPath: /conf}
    - {name: data, mountPath: /data}
    - {name: mixed, mountPath: /mixed}
    - {name: only, mountPath: /only}
    - {name: tmp, mountPath: /tmp}
  volumes:
  - {name: conf, configMap: {name: files}}
  - {name: cred, secret: {secretName: cred}}
  - {name: data, persistentVolumeClaim: {claimName: data}}
  - {name: mixed, projected: {sources: [{configMap: {name: conf}}, {downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}]}}
  - {name: only, projected: {sources: [{secret: {name: deep}}, {clusterTrustBundle: {name: roots, path: a}}, {clusterTrustBundle: {signerName: example.com/mesh, path: b}}]}}
  - {name: own, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}
  - {name: tmp, emptyDir: {}}
`)
	m := New(static, clustertest.NewNodeWithUID("u1"))
	want := "ClusterTrustBundle/example.com/mesh,ClusterTrustBundle/roots,ConfigMap/conf,ConfigMap/files,PersistentVolumeClaim/data,PersistentVolumeClaim/web-n1-own,Secret/cred,Secret/deep,Secret/env,Secret/pull,ServiceAccount/robot"
	if got := m.Annotations[annotationLocalRefs]; got != want {
		t.Errorf("annotation with the removed references:\ngot  %s\nwant %s", got, want)
	}
	c := m.Spec.Containers[0]
	if len(c.Env) != 2 || len(c.VolumeMounts) != 2 || len(m.Spec.Volumes) != 2 || len(m.Spec.Volumes[0].Projected.Sources) != 1 {
		t.Errorf("got container %+v, volumes %+v; want 2 variables, 2 mounts, 2 volumes, and 1 projected source", c, m.Spec.Volumes)
	}
	if len(m.Spec.InitContainers[0].EnvFrom) > 0 || len(m.Spec.ImagePullSecrets) > 0 || m.Spec.ServiceAccountName != "" || m.Spec.Priority != nil {
		t.Errorf("got spec %+v, want no references and no priority", m.Spec)
	}
	if len(static.Spec.Containers[0].Env) != 4 || len(static.Spec.Volumes) != 7 || static.Annotations[annotationLocalRefs] != "" {
		t.Errorf("New modified the static pod: got %+v, want 4 variables, 7 volumes and no annotation with removed references", static)
	}
	if m.Annotations[manifest.AnnotationConfigHash] != static.Annotations[manifest.AnnotationConfigHash] {
		t.Errorf("got config hash %q, want the hash of the static pod, %q", m.Annotations[manifest.AnnotationConfigHash], static.Annotations[manifest.AnnotationConfigHash])
	}
}
