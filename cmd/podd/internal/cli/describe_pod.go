package cli

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"podd/cmd/podd/internal/printer"
	"podd/server"
)

func (d *description) writePod(p *v1.Pod) {
	d.beginObject()
	d.writeLine(0, "Name:\t%s", p.Name)
	d.writeLine(0, "Namespace:\t%s", p.Namespace)
	if p.Spec.Priority != nil {
		d.writeLine(0, "Priority:\t%s", *p.Spec.Priority)
	}
	d.writeLineIfSet(0, "Priority Class Name", p.Spec.PriorityClassName)
	if p.Spec.RuntimeClassName != nil {
		d.writeLine(0, "Runtime Class Name:\t%s", *p.Spec.RuntimeClassName)
	}
	d.writeLineIfSet(0, "Service Account", p.Spec.ServiceAccountName)
	d.writeLine(0, "Node:\t%s", printer.OrNone(strings.Trim(p.Spec.NodeName+"/"+p.Status.HostIP, "/")))
	if p.Status.StartTime != nil {
		d.writeLine(0, "Start Time:\t%s", formatTimestamp(*p.Status.StartTime))
	}
	d.writePairs("Labels", "=", p.Labels)
	d.writePairs("Annotations", ": ", p.Annotations)
	if p.DeletionTimestamp != nil {
		d.writeLine(0, "Status:\tTerminating (lasts %s)", duration.HumanDuration(d.now.Sub(p.DeletionTimestamp.Time)))
	} else {
		d.writeLine(0, "Status:\t%s", p.Status.Phase)
	}
	d.writeLineIfSet(0, "Reason", p.Status.Reason)
	d.writeLineIfSet(0, "Message", p.Status.Message)
	d.writeLineIfSet(0, "Why", d.explainState(server.Key{Namespace: p.Namespace, Name: p.Name}))
	d.writeLine(0, "IP:\t%s", p.Status.PodIP)
	if len(p.Status.PodIPs) == 0 {
		d.writeLine(0, "IPs:\t<none>")
	} else {
		d.writeLine(0, "IPs:")
	}
	for _, ip := range p.Status.PodIPs {
		d.writeLine(1, "IP:\t%s", ip.IP)
	}
	d.writeContainers("Init Containers", p, p.Spec.InitContainers, p.Status.InitContainerStatuses)
	d.writeContainers("Containers", p, p.Spec.Containers, p.Status.ContainerStatuses)
	d.writeContainers("Ephemeral Containers", p, ephemeralContainers(p), p.Status.EphemeralContainerStatuses)
	if len(p.Status.Conditions) > 0 {
		d.writeLine(0, "Conditions:\n  Type\tStatus")
		for _, c := range p.Status.Conditions {
			d.writeLine(1, "%s \t%s ", c.Type, c.Status)
		}
	}
	d.writeVolumes(p)
	d.writeLine(0, "QoS Class:\t%s", printer.OrNone(string(p.Status.QOSClass)))
	d.writePairs("Node-Selectors", "=", p.Spec.NodeSelector)
	d.writeList(0, "Tolerations", tolerationLines(p.Spec.Tolerations))
	d.writeEvents(func(o *v1.ObjectReference) bool { return o.Kind == "Pod" && o.UID == p.UID })
}

// tolerationLines returns a line for each toleration in the format of kubectl describe.
func tolerationLines(tolerations []v1.Toleration) []string {
	var lines []string
	for _, t := range tolerations {
		line := t.Key
		if t.Value != "" {
			line += "=" + t.Value
		}
		if t.Effect != "" {
			line += ":" + string(t.Effect)
		}
		if t.Operator == v1.TolerationOpExists {
			line = strings.TrimSpace(line + " op=Exists")
		}
		if t.TolerationSeconds != nil {
			line += fmt.Sprintf(" for %ds", *t.TolerationSeconds)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// writeVolumes writes the sources of a pod's volumes.
func (d *description) writeVolumes(p *v1.Pod) {
	if len(p.Spec.Volumes) == 0 {
		d.writeLine(0, "Volumes:\t<none>")
		return
	}
	d.writeLine(0, "Volumes:")
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		d.writeLine(1, "%s:", v.Name)
		for _, line := range volumeLines(v) {
			d.writeLine(2, line[0]+":\t%s", line[1])
		}
	}
}

// volumeLines returns the lines about the source of a volume: pairs of label and value.
func volumeLines(v *v1.Volume) [][2]string {
	switch s := v.VolumeSource; {
	case s.HostPath != nil:
		kind := ""
		if s.HostPath.Type != nil {
			kind = string(*s.HostPath.Type)
		}
		return [][2]string{{"Type", "HostPath (bare host directory volume)"}, {"Path", s.HostPath.Path}, {"HostPathType", kind}}
	case s.EmptyDir != nil:
		limit := "<unset>"
		if s.EmptyDir.SizeLimit != nil {
			limit = s.EmptyDir.SizeLimit.String()
		}
		return [][2]string{{"Type", "EmptyDir (a temporary directory that shares a pod's lifetime)"}, {"Medium", string(s.EmptyDir.Medium)}, {"SizeLimit", limit}}
	case s.Secret != nil:
		return [][2]string{{"Type", "Secret (a volume populated by a Secret)"}, {"SecretName", s.Secret.SecretName}, {"Optional", optionalText(s.Secret.Optional)}}
	case s.ConfigMap != nil:
		return [][2]string{{"Type", "ConfigMap (a volume populated by a ConfigMap)"}, {"Name", s.ConfigMap.Name}, {"Optional", optionalText(s.ConfigMap.Optional)}}
	case s.PersistentVolumeClaim != nil:
		return [][2]string{{"Type", "PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)"}, {"ClaimName", s.PersistentVolumeClaim.ClaimName}, {"ReadOnly", fmt.Sprint(s.PersistentVolumeClaim.ReadOnly)}}
	case s.Projected != nil:
		return append([][2]string{{"Type", "Projected (a volume that contains injected data from multiple sources)"}}, projectedVolumeLines(s.Projected)...)
	case s.DownwardAPI != nil:
		return [][2]string{{"Type", "DownwardAPI (a volume populated by information about the pod)"}}
	case s.Image != nil:
		return [][2]string{{"Type", "Image (a container image or OCI artifact)"}, {"Reference", s.Image.Reference}, {"PullPolicy", string(s.Image.PullPolicy)}}
	case s.NFS != nil:
		return [][2]string{{"Type", "NFS (an NFS mount that lasts the lifetime of a pod)"}, {"Server", s.NFS.Server}, {"Path", s.NFS.Path}, {"ReadOnly", fmt.Sprint(s.NFS.ReadOnly)}}
	case s.ISCSI != nil:
		return iscsiLines(s.ISCSI)
	case s.FC != nil:
		lun := "<none>"
		if s.FC.Lun != nil {
			lun = fmt.Sprint(*s.FC.Lun)
		}
		return [][2]string{{"Type", "FC (a Fibre Channel disk)"}, {"TargetWWNs", strings.Join(s.FC.TargetWWNs, ", ")}, {"LUN", lun}, {"FSType", s.FC.FSType}, {"ReadOnly", fmt.Sprint(s.FC.ReadOnly)}}
	}
	return [][2]string{{"Type", "<unknown>"}}
}

// iscsiLines returns the lines about an iSCSI disk: pairs of label and value.
func iscsiLines(s *v1.ISCSIVolumeSource) [][2]string {
	secret, initiator := "<none>", "<none>"
	if s.SecretRef != nil {
		secret = s.SecretRef.Name
	}
	if s.InitiatorName != nil {
		initiator = *s.InitiatorName
	}
	return [][2]string{
		{"Type", "ISCSI (an iSCSI disk that is attached to the node)"}, {"TargetPortal", s.TargetPortal}, {"IQN", s.IQN}, {"Lun", fmt.Sprint(s.Lun)},
		{"ISCSIInterface", s.ISCSIInterface}, {"FSType", s.FSType}, {"ReadOnly", fmt.Sprint(s.ReadOnly)}, {"Portals", strings.Join(s.Portals, ", ")},
		{"DiscoveryCHAPAuth", fmt.Sprint(s.DiscoveryCHAPAuth)}, {"SessionCHAPAuth", fmt.Sprint(s.SessionCHAPAuth)}, {"SecretRef", secret}, {"InitiatorName", initiator},
	}
}

// projectedVolumeLines returns the lines about the sources of a projected volume: pairs of label
// and value.
func projectedVolumeLines(p *v1.ProjectedVolumeSource) [][2]string {
	var lines [][2]string
	for _, s := range p.Sources {
		switch {
		case s.Secret != nil:
			lines = append(lines, [2]string{"SecretName", s.Secret.Name})
		case s.ConfigMap != nil:
			lines = append(lines, [2]string{"ConfigMapName", s.ConfigMap.Name})
		case s.DownwardAPI != nil:
			lines = append(lines, [2]string{"DownwardAPI", "true"})
		}
	}
	return lines
}

// optionalText formats the value of the field "optional" of a reference; nil means false.
func optionalText(o *bool) string { return fmt.Sprint(o != nil && *o) }

// ephemeralContainers returns the ephemeral containers of a pod, converted to regular
// containers.
func ephemeralContainers(p *v1.Pod) []v1.Container {
	var containers []v1.Container
	for i := range p.Spec.EphemeralContainers {
		containers = append(containers, v1.Container(p.Spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return containers
}
