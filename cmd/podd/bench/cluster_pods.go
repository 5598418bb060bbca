package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// decodeWithObjects returns the pod, a ConfigMap and a Secret. It adds a volume with the ConfigMap
// and a volume with the Secret to the pod, because most pods of a cluster have such volumes.
func (p pod) decodeWithObjects() (*v1.Pod, *v1.ConfigMap, *v1.Secret, error) {
	decodedPod := &v1.Pod{}
	if err := yaml.Unmarshal([]byte(p.text), decodedPod); err != nil {
		return nil, nil, nil, fmt.Errorf("reading the manifest of %s: %w", p.name, err)
	}
	main := &decodedPod.Spec.Containers[0]
	for name, source := range map[string]v1.VolumeSource{
		"config": {ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: p.name}}},
		"secret": {Secret: &v1.SecretVolumeSource{SecretName: p.name}},
	} {
		decodedPod.Spec.Volumes = append(decodedPod.Spec.Volumes, v1.Volume{Name: name, VolumeSource: source})
		main.VolumeMounts = append(main.VolumeMounts, v1.VolumeMount{Name: name, MountPath: "/etc/" + name})
	}
	meta := metav1.ObjectMeta{Name: p.name}
	return decodedPod,
		&v1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta, Data: map[string]string{"app.conf": strings.Repeat("key = value\n", 80)}},
		&v1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta, Data: map[string][]byte{"password": []byte("correct horse battery staple")}},
		nil
}

// manifestWithObjects returns a manifest with the pod, its ConfigMap and its Secret.
func (p pod) manifestWithObjects() (string, error) {
	object, config, secret, err := p.decodeWithObjects()
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, o := range []any{object, config, secret} {
		text, err := yaml.Marshal(o)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&all, "---\n%s", text)
	}
	return all.String(), nil
}

const defaultNamespacePath = "/api/v1/namespaces/default/"

// startPods creates pods and binds them to a node. bindTime is the time just before the binding, and
// runTime the time at which all processes of the pods were running. The API server also adds a volume
// with a service account token and the cluster's CA certificate to each pod, as in most clusters.
func (c *cluster) startPods(ctx context.Context, node string, pods []pod) (bindTime, runTime time.Time, err error) {
	for _, p := range pods {
		decodedPod, config, secret, err := p.decodeWithObjects()
		if err != nil {
			return bindTime, runTime, err
		}
		for _, o := range []struct {
			kind   string
			object any
		}{{"configmaps", config}, {"secrets", secret}, {"pods", decodedPod}} {
			if err := c.plane.Do(http.MethodPost, defaultNamespacePath+o.kind, o.object, nil); err != nil {
				return bindTime, runTime, err
			}
		}
	}
	if err = sleep(ctx, podRoundPause); err != nil {
		return
	}
	bindTime = time.Now()
	for _, p := range pods {
		binding := &v1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.name}, Target: v1.ObjectReference{Kind: "Node", Name: node}}
		if err = c.plane.Do(http.MethodPost, defaultNamespacePath+"pods/"+p.name+"/binding", binding, nil); err != nil {
			return
		}
	}
	runTime, err = c.b.starts.waitFor(ctx, podNames(pods), bindTime)
	return
}

// removePods deletes pods on podd's node and waits until podd has removed everything that
// belongs to them.
func (c *cluster) removePods(ctx context.Context, pods []pod) error {
	dirs, err := newDirDrainWaiter(c.b.daemon.podsDir())
	if err != nil {
		return err
	}
	defer dirs.close()
	for _, p := range pods {
		for _, kind := range []string{"pods/", "configmaps/", "secrets/"} {
			if err := c.plane.Do(http.MethodDelete, defaultNamespacePath+kind+p.name, nil, nil); err != nil {
				return err
			}
		}
	}
	if _, err := c.b.tasks.waitEmpty(ctx); err != nil {
		return err
	}
	if _, err := dirs.waitEmpty(ctx); err != nil {
		return err
	}
	return sleep(ctx, podRoundPause)
}
