package manifest

// unscheduled is said of what only a scheduler reads.
const unscheduled = "has no effect; a pod here runs on this node and nowhere else"

// unhooked is said of a hook that Kubernetes takes and that fails each time.
const unhooked = "no node agent makes such a hook; write exec, httpGet or sleep"

// forWindows is said of what only a node of that system could serve.
const forWindows = "is for Windows, and this node runs Linux; remove it"

// What is said of the claim of an ephemeral volume.
const (
	ephemeralIs = "a volume that goes with its pod is a directory of podd's; use a persistentVolumeClaim"
	noFilling   = "podd fills no volume; let an init container do that"
)

// noDevices is said of what a driver of a cluster would allocate.
const noDevices = "there is no cluster to allocate the devices of a ResourceClaim; remove it, or mount the device with hostPath"

// What is said of volumes that are not this machine's.
const (
	mountIt  = "podd mounts nothing but nfs from the network; mount it on the machine (/etc/fstab, a .mount unit) and use hostPath"
	attachIt = "podd attaches no disks; attach and mount it on the machine and use hostPath, or a claim with a local PersistentVolume"
	noCloud  = "podd talks to no cloud; attach and mount the disk on the machine and use hostPath, or a claim with a local PersistentVolume"
	noDriver = "Kubernetes has no driver for it any more; mount the volume on the machine and use hostPath"
)

// serverFields are the metadata that an API server puts into a manifest when it
// is exported; like status they are ignored, whatever they hold.
var serverFields = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation",
	"managedFields", "ownerReferences", "resourceVersion", "selfLink",
}

// templateMetadata is what the claim of an ephemeral volume gets from its pod, or
// not at all.
var templateMetadata = append([]string{"name", "generateName", "namespace", "uid", "finalizers"}, serverFields...)

// servedFields says for every field of a pod whether podd serves it. To serve
// another one, add its row here, its validation, and its golden.
var servedFields = []row{
	{"apiVersion", served, ""},
	{"kind", served, ""},

	{"metadata.name", served, ""},
	{"metadata.namespace", served, ""},
	{"metadata.uid", served, ""},
	{"metadata.labels", served, ""},
	{"metadata.annotations", served, ""},
	{"metadata.finalizers", noted, "has no effect; podd ends a pod when its manifest goes"},
	{"metadata.generateName", noted, "has no effect; metadata.name counts"},

	{"spec.restartPolicy", served, ""},
	{"spec.terminationGracePeriodSeconds", served, ""},
	{"spec.activeDeadlineSeconds", served, ""},
	{"spec.hostNetwork", served, ""},
	{"spec.hostPID", served, ""},
	{"spec.hostIPC", served, ""},
	{"spec.hostname", served, ""},
	{"spec.dnsPolicy", served, ""},
	{"spec.dnsConfig", served, ""},
	{"spec.nodeName", served, ""},
	{"spec.priority", served, ""},
	{"spec.priorityClassName", served, ""},
	{"spec.imagePullSecrets", served, ""},
	{"spec.enableServiceLinks", served, ""},
	{"spec.readinessGates[].conditionType", served, ""},
	{"spec.schedulerName", served, ""},
	{"spec.tolerations", served, ""},
	{"spec.automountServiceAccountToken", served, ""},
	{"spec.serviceAccountName", noted, "mounts no token; there is no API server to issue one"},
	{"spec.serviceAccount", noted, "mounts no token; there is no API server to issue one"},
	{"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution", served, ""},
	{"spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution", noted, unscheduled},
	{"spec.affinity.podAffinity", noted, unscheduled},
	{"spec.affinity.podAntiAffinity", noted, unscheduled},
	{"spec.nodeSelector", served, ""},
	{"spec.topologySpreadConstraints", noted, unscheduled},
	{"spec.runtimeClassName", served, ""},
	{"spec.shareProcessNamespace", served, ""},
	{"spec.setHostnameAsFQDN", served, ""},
	{"spec.subdomain", served, ""},
	{"spec.hostAliases", served, ""},
	{"spec.hostUsers", served, ""},
	{"spec.preemptionPolicy", served, ""}, // no pod is ended for another one
	{"spec.os.name", only, `"linux" names another system, and this node runs Linux; remove it`},
	{"spec.schedulingGates", refused, "there is no scheduler that would wait; write the manifest when the pod may start"},
	{"spec.hostnameOverride", refused, "is behind a gate that Kubernetes 1.34 has off; write hostname and subdomain"},
	{"spec.resourceClaims", refused, noDevices},
	{"spec.overhead.cpu", served, ""},
	{"spec.overhead.memory", served, ""},
	{"spec.overhead.ephemeral-storage", served, ""},
	{"spec.overhead." + hugePagesRow, served, ""},
	{"spec.resources.claims", refused, noDevices},
	{"spec.resources.limits.cpu", served, ""},
	{"spec.resources.limits.memory", served, ""},
	{"spec.resources.limits." + hugePagesRow, served, ""},
	{"spec.resources.requests.cpu", served, ""},
	{"spec.resources.requests.memory", served, ""},
	{"spec.resources.requests." + hugePagesRow, served, ""},
	{"spec.ephemeralContainers", refused, "cannot be part of a manifest; write a container, or add it to the running pod with podd debug or kubectl debug"},

	{"spec.securityContext.runAsUser", served, ""},
	{"spec.securityContext.runAsGroup", served, ""},
	{"spec.securityContext.fsGroup", served, ""},
	{"spec.securityContext.fsGroupChangePolicy", served, ""},
	{"spec.securityContext.runAsNonRoot", served, ""},
	{"spec.securityContext.supplementalGroups", served, ""},
	{"spec.securityContext.supplementalGroupsPolicy", served, ""},
	{"spec.securityContext.seLinuxOptions", served, ""},
	{"spec.securityContext.seLinuxChangePolicy", served, ""}, // the runtime labels file by file
	{"spec.securityContext.appArmorProfile", served, ""},
	{"spec.securityContext.windowsOptions", refused, forWindows},
	{"spec.securityContext.seccompProfile", served, ""},
	{"spec.securityContext.sysctls", served, ""},

	{"spec.volumes[].name", served, ""},
	{"spec.volumes[].emptyDir", served, ""},
	{"spec.volumes[].hostPath", served, ""},
	{"spec.volumes[].configMap", served, ""},
	{"spec.volumes[].secret", served, ""},
	{"spec.volumes[].downwardAPI", served, ""},
	{"spec.volumes[].nfs", served, ""},
	{"spec.volumes[].persistentVolumeClaim", served, ""},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.metadata.labels", served, ""},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.metadata.annotations", served, ""},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.spec.accessModes", served, ""},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.spec.resources", served, ""},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.spec.storageClassName", served, ""},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.spec.volumeMode", only, `"Filesystem" ` + ephemeralIs},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.spec.volumeName", refused, ephemeralIs},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.spec.selector", refused, ephemeralIs},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.spec.dataSource", refused, noFilling},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.spec.dataSourceRef", refused, noFilling},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.spec.volumeAttributesClassName", refused, noClass},
	{"spec.volumes[].image", served, ""},
	{"spec.volumes[].projected.defaultMode", served, ""},
	{"spec.volumes[].projected.sources[].configMap", served, ""},
	{"spec.volumes[].projected.sources[].secret", served, ""},
	{"spec.volumes[].projected.sources[].downwardAPI", served, ""},
	{"spec.volumes[].projected.sources[].serviceAccountToken", refused, "there is no cluster to issue a token; remove it, or put one into a Secret beside the pod"},
	{"spec.volumes[].projected.sources[].clusterTrustBundle", refused, "there is no cluster to have one; put the certificates into a ConfigMap beside the pod"},
	{"spec.volumes[].projected.sources[].podCertificate", refused, "there is no cluster to issue one; put a certificate into a Secret beside the pod"},
	{"spec.volumes[].gitRepo", refused, "refused, CVE-2024-10220; use an init container that clones"},
	{"spec.volumes[].cephfs", refused, mountIt},
	{"spec.volumes[].glusterfs", refused, mountIt},
	{"spec.volumes[].quobyte", refused, mountIt},
	{"spec.volumes[].azureFile", refused, mountIt},
	{"spec.volumes[].iscsi", refused, attachIt},
	{"spec.volumes[].rbd", refused, attachIt},
	{"spec.volumes[].fc", refused, attachIt},
	{"spec.volumes[].csi", refused, "CSI drivers make volumes for pods of a cluster alone; mount the volume on the machine and use hostPath, or a claim with a local PersistentVolume"},
	{"spec.volumes[].flexVolume", refused, "podd runs no FlexVolume drivers; mount the volume on the machine and use hostPath, or a claim"},
	{"spec.volumes[].awsElasticBlockStore", refused, noCloud},
	{"spec.volumes[].azureDisk", refused, noCloud},
	{"spec.volumes[].cinder", refused, noCloud},
	{"spec.volumes[].gcePersistentDisk", refused, noCloud},
	{"spec.volumes[].vsphereVolume", refused, noCloud},
	{"spec.volumes[].photonPersistentDisk", refused, noDriver},
	{"spec.volumes[].portworxVolume", refused, noDriver},
	{"spec.volumes[].scaleIO", refused, noDriver},
	{"spec.volumes[].storageos", refused, noDriver},
	{"spec.volumes[].flocker", refused, noDriver},
}

// servedContainerFields are the fields of regular and init containers alike.
var servedContainerFields = []row{
	{"name", served, ""},
	{"image", served, ""},
	{"imagePullPolicy", served, ""},
	{"command", served, ""},
	{"args", served, ""},
	{"workingDir", served, ""},
	{"stdin", served, ""},
	{"stdinOnce", served, ""},
	{"tty", served, ""},
	{"ports", served, ""},
	{"livenessProbe", served, ""},
	{"readinessProbe", served, ""},
	{"startupProbe", served, ""},
	// With Options.RestartRules; without, validation says why not.
	{"restartPolicy", served, ""},
	{"restartPolicyRules[].action", served, ""},
	{"restartPolicyRules[].exitCodes.operator", served, ""},
	{"restartPolicyRules[].exitCodes.values", served, ""},
	{"lifecycle.stopSignal", served, ""},
	{"lifecycle.postStart.exec", served, ""},
	{"lifecycle.postStart.httpGet", served, ""},
	{"lifecycle.postStart.sleep", served, ""},
	{"lifecycle.postStart.tcpSocket", refused, unhooked},
	{"lifecycle.preStop.exec", served, ""},
	{"lifecycle.preStop.httpGet", served, ""},
	{"lifecycle.preStop.sleep", served, ""},
	{"lifecycle.preStop.tcpSocket", refused, unhooked},
	{"terminationMessagePath", served, ""},
	{"terminationMessagePolicy", served, ""},

	{"env[].name", served, ""},
	{"env[].value", served, ""},
	{"envFrom", served, ""},
	{"env[].valueFrom.configMapKeyRef", served, ""},
	{"env[].valueFrom.secretKeyRef", served, ""},
	{"env[].valueFrom.fieldRef", served, ""},
	{"env[].valueFrom.resourceFieldRef", served, ""},
	{"env[].valueFrom.fileKeyRef", refused, "is behind a gate that Kubernetes 1.34 has off; write the value, or a ConfigMap beside the pod"},

	{"resources.claims", refused, noDevices},
	{"resources.limits.cpu", served, ""},
	{"resources.limits.memory", served, ""},
	{"resources.requests.cpu", served, ""},
	{"resources.requests.memory", served, ""},
	{"resources.limits.ephemeral-storage", served, ""},
	{"resources.requests.ephemeral-storage", served, ""},
	{"resources.limits." + hugePagesRow, served, ""},
	{"resources.requests." + hugePagesRow, served, ""},
	{"resources.limits." + extendedRow, served, ""},
	{"resources.requests." + extendedRow, served, ""},
	{"resizePolicy[].resourceName", served, ""},
	{"resizePolicy[].restartPolicy", served, ""},

	{"volumeMounts[].name", served, ""},
	{"volumeMounts[].mountPath", served, ""},
	{"volumeMounts[].readOnly", served, ""},
	{"volumeMounts[].subPath", served, ""},
	{"volumeMounts[].subPathExpr", served, ""},
	{"volumeMounts[].mountPropagation", served, ""},
	{"volumeMounts[].recursiveReadOnly", served, ""},
	{"volumeDevices[].name", served, ""},
	{"volumeDevices[].devicePath", served, ""},

	{"securityContext.runAsUser", served, ""},
	{"securityContext.runAsGroup", served, ""},
	{"securityContext.runAsNonRoot", served, ""},
	{"securityContext.privileged", served, ""},
	{"securityContext.capabilities", served, ""},
	{"securityContext.readOnlyRootFilesystem", served, ""},
	{"securityContext.allowPrivilegeEscalation", served, ""},
	{"securityContext.seccompProfile", served, ""},
	{"securityContext.procMount", served, ""},
	{"securityContext.seLinuxOptions", served, ""},
	{"securityContext.appArmorProfile", served, ""},
	{"securityContext.windowsOptions", refused, forWindows},
}
