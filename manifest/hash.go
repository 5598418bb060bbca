package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// Do not change the inputs of the hashes in this file: any change gives every pod
// on every node a new UID and so restarts it. If a change is necessary, increase the
// version and keep the code for "v1:" hashes.
const hashVersion = "v1:"

// Hashes identify a version of a pod and of its parts.
type Hashes struct {
	Pod, Sandbox string                   // as Pod.Hash and Pod.SandboxHash
	Containers   map[string]ContainerHash // as Pod.Containers

	version []any // the input of Pod
}

// HashManifest returns the hashes of a pod of a manifest. user is the pod as the user wrote
// it, pod the same with defaults. written has the meaning of decode.Options.Written.
func HashManifest(user map[string]any, pod *v1.Pod, written bool) Hashes {
	user = canonical(user)
	lasting := user
	if written {
		lasting = immutablePart(user)
	}
	version := version(lasting, pod)
	return Hashes{
		Pod: hashVersion + Digest("pod", version), Sandbox: hashSandbox(user),
		Containers: hashContainers(user, &pod.Spec), version: version,
	}
}

// UID returns the UID of a pod of a manifest whose user did not set one.
func (h Hashes) UID(node string, key types.NamespacedName) types.UID {
	return types.UID(Digest("uid", node, key.Namespace, key.Name, h.version))
}

// HashAPI returns the hashes of a pod from an API server, which has set defaults. The hashes of
// the pod and of its sandbox depend only on the UID of the pod.
func HashAPI(pod *v1.Pod) Hashes {
	return Hashes{
		Pod: hashVersion + Digest("api", pod.UID), Sandbox: hashVersion + Digest("api sandbox", pod.UID),
		Containers: hashImages(&pod.Spec),
	}
}

// sandboxFields lists the fields of a pod's spec that affect its sandbox.
var sandboxFields = []string{
	"dnsConfig", "dnsPolicy", "hostIPC", "hostNetwork", "hostPID", "hostUsers", "hostname", "hostnameOverride",
	"os", "overhead", "runtimeClassName", "securityContext", "setHostnameAsFQDN", "shareProcessNamespace", "subdomain",
}

// ServerMetadata lists the metadata that an API server adds to an exported manifest. It is
// ignored like status.
var ServerMetadata = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation",
	"managedFields", "ownerReferences", "resourceVersion", "selfLink",
}

// UserPart returns a shallow copy of a pod's tree without status and without the metadata
// that a server sets, because an exported manifest may or may not contain them.
func UserPart(tree map[string]any) map[string]any {
	pod := maps.Clone(tree)
	delete(pod, "status")
	if meta, ok := pod["metadata"].(map[string]any); ok {
		meta = maps.Clone(meta)
		for _, key := range ServerMetadata {
			delete(meta, key)
		}
		pod["metadata"] = meta
	}
	return pod
}

// canonical returns the user's part of a pod without nulls and without metadata that has no
// effect here. It adds kind and apiVersion, which a PodList omits.
func canonical(user map[string]any) map[string]any {
	pod := withoutNulls(user).(map[string]any)
	pod["apiVersion"], pod["kind"] = "v1", "Pod"
	if meta, ok := pod["metadata"].(map[string]any); ok {
		delete(meta, "finalizers")
		delete(meta, "generateName")
	}
	return pod
}

// immutablePart returns a pod without the fields that an API server allows to change while the
// pod runs: labels, annotations, images and mutableSpec.
func immutablePart(user map[string]any) map[string]any {
	pod := maps.Clone(user)
	if meta, ok := pod["metadata"].(map[string]any); ok {
		meta = maps.Clone(meta)
		delete(meta, "annotations")
		delete(meta, "labels")
		pod["metadata"] = meta
	}
	spec, ok := pod["spec"].(map[string]any)
	if !ok {
		return pod
	}
	spec = maps.Clone(spec)
	for _, name := range mutableSpec {
		delete(spec, name)
	}
	for _, list := range []string{"initContainers", "containers"} {
		if items, ok := spec[list].([]any); ok {
			spec[list] = eachOf(items, withoutImage)
		}
	}
	pod["spec"] = spec
	return pod
}

var mutableSpec = []string{"activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations"}

func withoutImage(v any) any {
	c, ok := v.(map[string]any)
	if !ok {
		return v
	}
	c = maps.Clone(c)
	delete(c, "image")
	return c
}

// version returns the values that distinguish two versions of a pod: the fields that the user
// wrote, and the QoS class, because the parent of the cgroup depends on it. The amounts of cpu
// and memory of containers are not included, because they are changed in place. If the pod can
// finish, they are included, so that a changed amount runs the pod again.
func version(user map[string]any, p *v1.Pod) []any {
	class := QoS(p)
	if p.Spec.RestartPolicy != v1.RestartPolicyAlways {
		return []any{user, class}
	}
	pod := maps.Clone(user)
	if spec, ok := pod["spec"].(map[string]any); ok {
		spec = maps.Clone(spec)
		for _, list := range []string{"initContainers", "containers"} {
			if items, ok := spec[list].([]any); ok {
				spec[list] = eachOf(items, withoutAmounts)
			}
		}
		pod["spec"] = spec
	}
	return []any{pod, class}
}

// withoutAmounts returns a container without the amounts of its cpu and memory, but with
// the fact that it has them.
func withoutAmounts(v any) any {
	c, _ := v.(map[string]any)
	r, ok := c["resources"].(map[string]any)
	if !ok {
		return v
	}
	c, r = maps.Clone(c), maps.Clone(r)
	for _, list := range []string{"limits", "requests"} {
		if amounts, ok := r[list].(map[string]any); ok {
			r[list] = maskAmounts(amounts)
		}
	}
	c["resources"] = r
	return c
}

// maskAmounts keeps zero, because it means that there is no limit.
func maskAmounts(amounts map[string]any) map[string]any {
	amounts = maps.Clone(amounts)
	for _, name := range []string{string(v1.ResourceCPU), string(v1.ResourceMemory)} {
		v, written := amounts[name]
		if q, err := resource.ParseQuantity(fmt.Sprint(v)); written && err == nil && !q.IsZero() {
			amounts[name] = true // cannot be confused with a written amount
		}
	}
	return amounts
}

func eachOf(items []any, change func(any) any) []any {
	out := make([]any, len(items))
	for i := range items {
		out[i] = change(items[i])
	}
	return out
}

func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, member := range v {
			if member != nil {
				out[key] = withoutNulls(member)
			}
		}
		return out
	case []any:
		return eachOf(v, withoutNulls)
	}
	return v
}

// Digest returns the SHA-256 digest, cut to 128 bits and in hexadecimal, of the JSON of
// parts: keys sorted, no blanks, numbers in their shortest form.
func Digest(parts ...any) string {
	text, err := json.Marshal(parts)
	if err != nil {
		panic("manifest: encoding the input of a hash: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// hashSandbox hashes the fields that affect a pod's sandbox. Labels and annotations are not
// included, because changes of them are applied without a restart.
func hashSandbox(pod map[string]any) string {
	spec, _ := pod["spec"].(map[string]any)
	meta, _ := pod["metadata"].(map[string]any)
	picked := map[string]any{}
	for _, key := range sandboxFields {
		if v, ok := spec[key]; ok {
			picked[key] = v
		}
	}
	var ports []any
	privileged := false
	eachContainer(spec, func(_ string, c map[string]any) {
		ports = append(ports, c["ports"])
		security, _ := c["securityContext"].(map[string]any)
		privileged = privileged || security["privileged"] == true
	})
	return hashVersion + Digest("sandbox", meta["namespace"], meta["name"], picked, ports, privileged)
}

// hashContainers returns the hashes of all init and regular containers by name. of is the spec
// with defaults, from which the sizes are computed.
func hashContainers(pod map[string]any, of *v1.PodSpec) map[string]ContainerHash {
	sizes := sizesOf(of)
	spec, _ := pod["spec"].(map[string]any)
	hashes := map[string]ContainerHash{}
	eachContainer(spec, func(list string, c map[string]any) {
		name, _ := c["name"].(string)
		rest := make(map[string]any, len(c))
		for key, v := range c {
			if key != "resources" {
				rest[key] = v
			}
		}
		hashes[name] = ContainerHash{
			Start: hashVersion + Digest("start", list, rest),
			Size:  sizes[name],
		}
	})
	return hashes
}

func eachContainer(spec map[string]any, visit func(list string, container map[string]any)) {
	for _, list := range []string{"initContainers", "containers"} {
		items, _ := spec[list].([]any)
		for _, item := range items {
			if c, ok := item.(map[string]any); ok {
				visit(list, c)
			}
		}
	}
}

// hashImages returns ContainerHashes that distinguish containers as the kubelet does.
func hashImages(spec *v1.PodSpec) map[string]ContainerHash {
	sizes, hashes := sizesOf(spec), map[string]ContainerHash{}
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			c := &list[i]
			hashes[c.Name] = ContainerHash{Start: hashVersion + Digest("api start", c.Name, c.Image), Size: sizes[c.Name]}
		}
	}
	return hashes
}
