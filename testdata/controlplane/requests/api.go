package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"podd/testdata/controlplane/cluster"
)

// objects is a manifest of the objects that pods use, and of volumes with their claims. Each
// volume precedes its claim.
//
//go:embed objects.yaml
var objects string

// registeredKubelet is a kubelet that has registered with an API server. It contains the cluster of
// the API server and the runtime of the kubelet.
type registeredKubelet struct {
	*kubelet
	*cluster.Cluster
	m *memoryRuntime
}

// register starts a control plane and a kubelet that registers with it.
func register(ctx context.Context, programs, dir string) (*registeredKubelet, error) {
	c, err := cluster.Start(ctx, cluster.Options{Dir: filepath.Join(dir, "cluster"), Programs: programs})
	if err != nil {
		return nil, err
	}
	address, err := hostAddress()
	if err != nil {
		return nil, err
	}
	r := &registeredKubelet{&kubelet{dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig"), address: address}, c, newMemoryRuntime()}
	user, group := cluster.NodeUser(nodeName)
	if err := c.WriteKubeconfig(r.kubeconfig, user, group); err != nil {
		return nil, err
	}
	if err := r.m.serve(r.socket()); err != nil {
		return nil, err
	}
	if err := r.kubelet.start(filepath.Join(programs, "kubelet")); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(5 * idleTimeout); ; time.Sleep(time.Second) {
		if _, err := c.Client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{}); err == nil {
			return r, nil
		} else if time.Now().After(deadline) {
			r.stopAll()
			return nil, fmt.Errorf("the kubelet has not registered: %w", err)
		}
	}
}

// hostAddress returns an address of the host that the kubelet accepts for a node.
func hostAddress() (string, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for _, a := range addrs {
		if ip, _, err := net.ParseCIDR(a.String()); err == nil && ip.To4() != nil && ip.IsGlobalUnicast() {
			return ip.String(), nil
		}
	}
	return "", errors.New("finding an address for the node: the host has only loopback addresses")
}

func (r *registeredKubelet) stopAll() {
	r.kubelet.stop()
	_ = r.Stop()
}

// recordAPI records the pods that need an API server.
func recordAPI(ctx context.Context, programs, dir string) error {
	r, err := register(ctx, programs, dir)
	if err != nil {
		return err
	}
	defer r.stopAll()
	if err := r.createObjects(ctx); err != nil {
		return err
	}
	pods := podsAPI()
	for _, pod := range pods {
		r.m.expect(r.podName(pod), pod)
		if err := r.create(ctx, pod); err != nil {
			return fmt.Errorf("%s: %w", name(pod), err)
		}
	}
	for _, pod := range r.m.wait(r.kubelet, pods) {
		text, _ := json.Marshal(pod)
		fmt.Printf("not created by the kubelet: %s\n%s", text, r.lastError(name(pod)))
	}
	if err := r.readFiles(); err != nil {
		return err
	}
	return write(r.kubelet, r.m, pods, objects, outputAPI)
}

// createObjects creates the objects in the manifest, and the directories of volumes.
func (r *registeredKubelet) createObjects(ctx context.Context) error {
	var volume *v1.PersistentVolume
	for _, text := range strings.Split(objects, "\n---\n") {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(text), &kind); err != nil {
			return err
		}
		var err error
		switch kind.Kind {
		case "ConfigMap":
			err = withObject(text, func(o *v1.ConfigMap) error {
				_, err := r.Client.CoreV1().ConfigMaps("default").Create(ctx, o, metav1.CreateOptions{})
				return err
			})
		case "Secret":
			err = withObject(text, func(o *v1.Secret) error {
				_, err := r.Client.CoreV1().Secrets("default").Create(ctx, o, metav1.CreateOptions{})
				return err
			})
		case "PersistentVolume":
			err = withObject(text, func(o *v1.PersistentVolume) error {
				volume = o
				return r.moveVolume(o)
			})
		case "RuntimeClass":
			err = withObject(text, func(o *nodev1.RuntimeClass) error {
				_, err := r.Client.NodeV1().RuntimeClasses().Create(ctx, o, metav1.CreateOptions{})
				return err
			})
		case "PersistentVolumeClaim":
			err = withObject(text, func(o *v1.PersistentVolumeClaim) error {
				o.Namespace = "default"
				return r.CreateBoundVolume(ctx, volume, o)
			})
		default:
			err = fmt.Errorf("unsupported kind %s", kind.Kind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func withObject[T any](text string, do func(*T) error) error {
	o := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), o); err != nil {
		return err
	}
	return do(o)
}

// moveVolume moves the path of a volume below hostRoot, and creates the directory or block device
// of the volume.
func (k *kubelet) moveVolume(pv *v1.PersistentVolume) error {
	path := &pv.Spec.PersistentVolumeSource
	if path.HostPath != nil {
		path.HostPath.Path = k.hostRoot() + path.HostPath.Path
		return os.MkdirAll(path.HostPath.Path, 0o755)
	}
	path.Local.Path = k.hostRoot() + path.Local.Path
	if mode := pv.Spec.VolumeMode; mode != nil && *mode == v1.PersistentVolumeBlock {
		return k.makeDevice(path.Local.Path)
	}
	return os.MkdirAll(path.Local.Path, 0o755)
}

// create creates a pod that is bound to the node. Like a controller, it also creates the claims
// of the ephemeral volumes of the pod.
func (r *registeredKubelet) create(ctx context.Context, pod map[string]any) error {
	text, err := json.Marshal(pod)
	if err != nil {
		return err
	}
	var o v1.Pod
	if err := json.Unmarshal(text, &o); err != nil {
		return err
	}
	o.Namespace, o.Spec.NodeName = "default", nodeName
	createdPod, err := r.Client.CoreV1().Pods(o.Namespace).Create(ctx, &o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		return err
	}
	for _, v := range createdPod.Spec.Volumes {
		if v.Ephemeral != nil {
			if err := r.bindEphemeral(ctx, createdPod, v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *registeredKubelet) bindEphemeral(ctx context.Context, pod *v1.Pod, v v1.Volume) error {
	template := v.Ephemeral.VolumeClaimTemplate
	claim := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name + "-" + v.Name, Namespace: pod.Namespace, Labels: template.Labels, Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pod, v1.SchemeGroupVersion.WithKind("Pod"))},
		},
		Spec: template.Spec,
	}
	if claim.Spec.StorageClassName == nil {
		noClass := ""
		claim.Spec.StorageClassName = &noClass
	}
	volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Name}, Spec: v1.PersistentVolumeSpec{
		Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, StorageClassName: *claim.Spec.StorageClassName,
		PersistentVolumeSource: v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/srv/" + claim.Name}},
	}}
	if err := r.moveVolume(volume); err != nil {
		return err
	}
	return r.CreateBoundVolume(ctx, volume, claim)
}
