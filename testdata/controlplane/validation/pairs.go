package main

import (
	"strings"

	"podd/testdata/controlplane/change"
)

// contradictions contains lines with changes, by the name of the base. pairs combines every two
// lines of a base. A line contains one or more changes "field.path=JSON", separated by blanks.
var contradictions = map[string]string{
	"minimal": `
spec.hostNetwork=true
spec.hostPID=true
spec.hostIPC=true
spec.hostUsers=false
spec.shareProcessNamespace=true
spec.setHostnameAsFQDN=true
spec.hostname="a" spec.subdomain="b"
spec.hostnameOverride="a"
spec.dnsPolicy="None"
spec.dnsPolicy="ClusterFirstWithHostNet"
spec.dnsConfig={"nameservers":["192.0.2.1"]}
spec.os={"name":"windows"}
spec.os={"name":"linux"}
spec.nodeName="n"
spec.schedulingGates=[{"name":"a"}]
spec.restartPolicy="Never"
spec.restartPolicy="OnFailure"
spec.activeDeadlineSeconds=1
spec.priorityClassName="system-node-critical"
spec.priority=5
spec.serviceAccountName="a"
spec.serviceAccount="b"
spec.initContainers=[{"name":"i","image":"i"}]
spec.initContainers=[{"name":"i","image":"i","restartPolicy":"Always"}]
spec.initContainers=[{"name":"i","image":"i","restartPolicy":"Always","lifecycle":{"postStart":{"exec":{"command":["a"]}}}}]
spec.initContainers=[{"name":"i","image":"i","lifecycle":{"postStart":{"exec":{"command":["a"]}}}}]
spec.initContainers=[{"name":"i","image":"i","livenessProbe":{"exec":{"command":["a"]}}}]
spec.initContainers=[{"name":"main","image":"i"}]
spec.securityContext={"sysctls":[{"name":"net.ipv4.ip_forward","value":"1"}]}
spec.securityContext={"sysctls":[{"name":"kernel.shmmax","value":"1"}]}
spec.securityContext={"seccompProfile":{"type":"RuntimeDefault"}}
spec.securityContext={"appArmorProfile":{"type":"Unconfined"}}
spec.securityContext={"runAsNonRoot":true,"runAsUser":0}
spec.securityContext={"windowsOptions":{"hostProcess":true}}
spec.containers.0.securityContext={"windowsOptions":{"hostProcess":true}}
spec.containers.0.securityContext={"privileged":true}
spec.containers.0.securityContext={"procMount":"Unmasked"}
spec.containers.0.securityContext={"allowPrivilegeEscalation":false}
spec.containers.0.restartPolicy="Never"
spec.containers.0.ports=[{"containerPort":80,"hostPort":81}]
spec.containers.0.ports=[{"containerPort":80}]
spec.containers.0.resources={"limits":{"cpu":"1"}}
spec.containers.0.resizePolicy=[{"resourceName":"cpu","restartPolicy":"RestartContainer"}]
spec.containers.0.livenessProbe={"exec":{"command":["a"]},"terminationGracePeriodSeconds":5}
spec.containers.0.lifecycle={"preStop":{"sleep":{"seconds":31}}}
spec.containers.0.lifecycle={"preStop":{"sleep":{"seconds":0}}}
spec.containers.0.lifecycle={"stopSignal":"SIGUSR1"}
spec.terminationGracePeriodSeconds=0
spec.resources={"limits":{"cpu":"1","memory":"1Gi"}}
spec.resources={"requests":{"cpu":"100m"}}
spec.overhead={"cpu":"1"}
spec.runtimeClassName="a"
spec.volumes=[{"name":"v","hostPath":{"path":"/a"}}] spec.containers.0.volumeMounts=[{"name":"v","mountPath":"/v","mountPropagation":"Bidirectional"}]
spec.volumes=[{"name":"v","emptyDir":{"medium":"HugePages"}}]
spec.volumes=[{"name":"v"},{"name":"V"}]
metadata.annotations={"container.apparmor.security.beta.kubernetes.io/main":"runtime/default"}
metadata.annotations={"container.apparmor.security.beta.kubernetes.io/other":"nonsense"}
metadata.annotations={"seccomp.security.alpha.kubernetes.io/pod":"runtime/default"}
metadata.annotations={"container.seccomp.security.alpha.kubernetes.io/main":"nonsense"}
metadata.annotations={"controller.kubernetes.io/pod-deletion-cost":"much"}
metadata.annotations={"kubernetes.io/config.mirror":"a"}
metadata.annotations={"scheduler.alpha.kubernetes.io/tolerations":"[{}]"}
metadata.annotations={"resize.alpha.kubernetes.io/a":"b"}`,
	"container": `
spec.containers.0.name="other"
spec.containers.1.ports=[{"containerPort":1,"hostPort":53,"protocol":"UDP"}]
spec.containers.1.ports=[{"containerPort":1,"hostPort":8080,"hostIP":"192.0.2.9"}]
spec.containers.1.ports=[{"containerPort":1,"hostPort":8080}]
spec.containers.1.ports=[{"containerPort":80,"name":"http"}]
spec.containers.1.ports=[{"containerPort":80},{"containerPort":80}]
spec.hostNetwork=true
spec.containers.0.ports.0.hostPort=80
spec.containers.0.stdin=false
spec.containers.0.terminationMessagePath="a"`,
	"security": `
spec.containers.0.securityContext.privileged=true
spec.containers.0.securityContext.allowPrivilegeEscalation=true
spec.containers.0.securityContext.capabilities={"add":["CAP_SYS_ADMIN"]}
spec.containers.0.securityContext.capabilities={"add":["SYS_ADMIN"]}
spec.containers.0.securityContext.capabilities={"drop":["nonsense",""]}
spec.containers.0.securityContext.procMount="Unmasked"
spec.containers.0.securityContext.seccompProfile=null
spec.containers.0.securityContext.seccompProfile={"type":"Localhost"}
spec.containers.0.securityContext.seccompProfile={"type":"Unconfined","localhostProfile":"a"}
spec.securityContext.seccompProfile={"type":"Localhost","localhostProfile":"/a"}
spec.securityContext.seccompProfile={"type":"Localhost","localhostProfile":"a/../b"}
spec.securityContext.fsGroupChangePolicy="Always"
spec.hostUsers=false
spec.os={"name":"windows"}
metadata.annotations={"seccomp.security.alpha.kubernetes.io/pod":"unconfined"}
metadata.annotations={"container.seccomp.security.alpha.kubernetes.io/main":"localhost/a"}
metadata.annotations={"container.apparmor.security.beta.kubernetes.io/main":"localhost/a"}`,
	"resources": `
spec.containers.0.resources.requests.cpu="2"
spec.containers.0.resources.limits.cpu="50m"
spec.containers.0.resources.requests.hugepages-2Mi="2Mi"
spec.containers.0.resources.limits.hugepages-2Mi="2Mi"
spec.containers.0.resources.limits.hugepages-1Gi="1Gi"
spec.containers.0.resources.limits.hugepages-2Mi="3Mi"
spec.containers.0.resources.requests=null
spec.containers.0.resources.limits=null
spec.containers.0.resources.requests.cpu="-1"
spec.containers.0.resources.limits.cpu="-1"
spec.containers.0.resources.requests={"example.com/gpu":"1"}
spec.containers.0.resources.limits={"example.com/gpu":"2"}
spec.containers.0.resources.limits={"example.com/gpu":"1.5"}
spec.resources={"requests":{"cpu":"50m"}}
spec.resources={"limits":{"cpu":"200m"}}
spec.resources={"limits":{"memory":"1Gi"},"requests":{"memory":"2Gi"}}
spec.resources={"limits":{"example.com/gpu":"1"}}
spec.resources={"claims":[{"name":"a"}]}
spec.overhead={"cpu":"-1"}
spec.overhead={"pods":"1"}
spec.restartPolicy="Never"`,
	"volumes": `
spec.volumes.1.hostPath={"path":"/a"}
spec.volumes.0.emptyDir={"medium":"HugePages"}
spec.volumes.2.emptyDir={"medium":"HugePages-2Mi"} spec.containers.0.resources={"limits":{"hugepages-2Mi":"2Mi","cpu":"1"}}
spec.volumes.0.name="empty"
spec.volumes.5.downwardAPI.items.0.resourceFieldRef={"containerName":"main","resource":"limits.cpu"}
spec.volumes.6.projected.sources.0.configMap.items.0.path="c"
spec.volumes.6.projected.sources.1.secret.items.0.path="a"
spec.volumes.6.projected.sources.0.serviceAccountToken={"path":"a"}
spec.volumes.3.configMap.items.0.path="a/../b"
spec.containers.0.volumeMounts.1.mountPath="/none"
spec.containers.0.volumeMounts.1.mountPath="/none/"
spec.containers.0.volumeMounts.1.mountPath="none"
spec.containers.0.volumeMounts.1.name="unknown"`,
	"env": `
spec.containers.0.env.0.valueFrom={"fieldRef":{"fieldPath":"metadata.name"}}
spec.containers.0.env.1.value="a"
spec.containers.0.env.1.valueFrom.secretKeyRef={"name":"a","key":"b"}
spec.containers.0.env.1.name="PLAIN"
spec.containers.0.env.4.valueFrom.resourceFieldRef.divisor="1Mi"
spec.containers.0.env.4.valueFrom.resourceFieldRef.divisor="2m"
spec.containers.0.env.4.valueFrom.resourceFieldRef.divisor="0"
spec.containers.0.env.5.valueFrom.resourceFieldRef.divisor="1m"
spec.containers.0.env.5.valueFrom.resourceFieldRef.containerName="other"
spec.containers.0.envFrom.0.secretRef={"name":"a"}
spec.containers.0.envFrom.1={}`,
	"probes": `
spec.containers.0.livenessProbe.exec={"command":["a"]}
spec.containers.0.livenessProbe.httpGet=null
spec.containers.0.readinessProbe.terminationGracePeriodSeconds=5
spec.containers.0.startupProbe.successThreshold=2
spec.initContainers.0.restartPolicy=null
spec.hostNetwork=true
spec.restartPolicy="Never"
spec.terminationGracePeriodSeconds=0
spec.containers.0.livenessProbe.terminationGracePeriodSeconds=0`,
	"mounts": `
spec.containers.0.volumeMounts.0.subPathExpr="a"
spec.containers.0.volumeMounts.0.recursiveReadOnly="Enabled"
spec.containers.0.volumeMounts.0.mountPropagation="HostToContainer"
spec.containers.0.volumeMounts.0.readOnly=false
spec.containers.0.volumeMounts.3.recursiveReadOnly="Enabled"
spec.containers.0.volumeMounts.3.mountPropagation="Bidirectional"
spec.containers.0.volumeMounts.3.readOnly=false
spec.containers.0.securityContext.privileged=false
spec.containers.0.securityContext=null
spec.containers.0.volumeDevices.0.name="data"
spec.containers.0.volumeDevices.0.name="unknown"
spec.containers.0.volumeDevices.0.devicePath="/data"
spec.containers.0.volumeMounts.1.name="block"
spec.hostUsers=false`,
	"affinity": `
spec.nodeSelector={"a":"b"}
spec.topologySpreadConstraints.0.whenUnsatisfiable="ScheduleAnyway"
spec.topologySpreadConstraints.0.minDomains=null
spec.topologySpreadConstraints.0.labelSelector=null
spec.topologySpreadConstraints.0.matchLabelKeys=["app"]
spec.topologySpreadConstraints.1={"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule"}
spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.0.mismatchLabelKeys=["version"]
spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.0.matchLabelKeys=["app"]
spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.0.labelSelector=null`,
}

// pairs returns the combinations for a base: each line alone, and each pair of lines.
func pairs(b base) [][]change.Change {
	var lines, sets [][]change.Change
	for _, text := range strings.Split(strings.TrimSpace(contradictions[b.name]), "\n") {
		if text != "" {
			lines = append(lines, change.Parse(text))
		}
	}
	for i := range lines {
		sets = append(sets, lines[i])
		for j := range i {
			sets = append(sets, append(append([]change.Change{}, lines[j]...), lines[i]...))
		}
	}
	return sets
}
