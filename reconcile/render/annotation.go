package render

import (
	"encoding/json"
	"strconv"

	"podd/manifest"
	"podd/runtime"
)

func containerLabels(in *ContainerInput) map[string]string {
	return addIdentityLabels(map[string]string{runtime.LabelContainerName: in.Container.Name}, in.Pod, in.Node)
}

// containerAnnotations returns the annotations of a container. After the manifest was removed, podd
// needs their values to stop the container with its preStop hook and grace period. podd also
// compares the annotations with the desired container.
func containerAnnotations(in *ContainerInput) map[string]string {
	c, spec := in.Container, in.Pod.Object
	a := map[string]string{
		runtime.AnnotationContainerHash:            manifest.KubeletHash(c),
		runtime.AnnotationStartHash:                in.Pod.ContainerHashes[c.Name].StartHashPrefix(),
		runtime.AnnotationRestartCount:             strconv.FormatUint(uint64(in.Restarts), 10),
		runtime.AnnotationTerminationMessagePath:   c.TerminationMessagePath,
		runtime.AnnotationTerminationMessagePolicy: string(c.TerminationMessagePolicy),
		runtime.AnnotationBackoffStep:              strconv.Itoa(in.BackoffStep),
		runtime.AnnotationSize:                     in.Pod.ContainerHashes[c.Name].Resources,
		runtime.AnnotationContainerKind:            in.Kind + ":" + strconv.Itoa(in.Index),
	}
	if in.PodRestarts > 0 {
		a[runtime.AnnotationPodRestarts] = strconv.FormatUint(uint64(in.PodRestarts), 10)
	}
	if in.Kind == kindEphemeral {
		a[runtime.AnnotationEphemeralContainer] = jsonText(spec.Spec.EphemeralContainers[in.Index])
		delete(a, runtime.AnnotationStartHash)
		delete(a, runtime.AnnotationSize)
	}
	if s := spec.DeletionGracePeriodSeconds; s != nil {
		a[runtime.AnnotationPodDeletionGracePeriod] = strconv.FormatInt(*s, 10)
	}
	if s := spec.Spec.TerminationGracePeriodSeconds; s != nil {
		a[runtime.AnnotationPodTerminationGracePeriod] = strconv.FormatInt(*s, 10)
	}
	if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
		a[runtime.AnnotationPreStopHandler] = jsonText(c.Lifecycle.PreStop)
	}
	if len(c.Ports) > 0 {
		a[runtime.AnnotationContainerPorts] = jsonText(c.Ports)
	}
	if ids := deviceIDs(in.Devices); len(ids) > 0 {
		a[runtime.AnnotationDevices] = jsonText(ids)
	}
	return a
}

// jsonText returns v as JSON. v must have an API type or consist of strings, because such values can
// always be marshaled.
func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(text)
}
