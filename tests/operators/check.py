"""The compose file, the manifest, the dashboard and what they refer to name the same ports, paths and jobs."""

import json
from pathlib import Path

import yaml

CONTRIB = Path(__file__).parents[2] / "contrib"


def read(path):
    return yaml.safe_load((CONTRIB / path).read_text())


def option(arguments, name):
    return arguments[arguments.index(name) + 1]


compose = read("compose/compose.yaml")
services = compose["services"]
server = services["everbloom"]
for service in services.values():
    for volume in service["volumes"]:
        source = volume.split(":")[0]
        if source.startswith("."):
            assert (CONTRIB / "compose" / source).exists(), source
        else:
            assert source in compose["volumes"], source
    # The whole world must not reach a port that was published in passing.
    assert all(port.startswith("127.0.0.1:") for port in service["ports"]), service["ports"]
metrics_port = option(server["command"], "--metrics-port")
scrape = read("compose/prometheus.yml")["scrape_configs"][0]
assert scrape["static_configs"][0]["targets"] == [f"everbloom:{metrics_port}"]
# The alerts name the job.
assert f'job="{scrape["job_name"]}"' in (CONTRIB / "prometheus/everbloom.rules.yml").read_text()
dashboards = read("compose/dashboards.yml")["providers"][0]["options"]["path"]
assert any(volume.split(":")[1] == dashboards for volume in services["grafana"]["volumes"])

_, service, stateful = yaml.safe_load_all((CONTRIB / "kubernetes/everbloom.yaml").read_text())
pod = stateful["spec"]["template"]
container = pod["spec"]["containers"][0]
ports = {port["name"]: port["containerPort"] for port in container["ports"]}
assert {port["name"]: port["port"] for port in service["spec"]["ports"]} == ports
assert option(container["args"], "--metrics-port") == str(ports["metrics"])
assert pod["metadata"]["annotations"]["prometheus.io/port"] == str(ports["metrics"])
assert pod["metadata"]["labels"] == stateful["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
probes = {name: container[f"{name}Probe"]["httpGet"] for name in ("liveness", "readiness")}
assert probes["liveness"] == {"path": "/health", "port": "metrics"}
assert probes["readiness"] == {"path": "/ready", "port": "metrics"}
assert option(container["args"], "--dir").startswith(container["volumeMounts"][0]["mountPath"])

containerfile = (CONTRIB / "Containerfile").read_text()
command = next(line for line in containerfile.splitlines() if line.startswith("CMD "))
assert option(json.loads(command.removeprefix("CMD ")), "--metrics-port") == metrics_port
exposed = next(line for line in containerfile.splitlines() if line.startswith("EXPOSE "))
assert exposed.split()[1:] == [str(port) for port in ports.values()]

dashboard = json.loads((CONTRIB / "grafana/everbloom.json").read_text())
panels = dashboard["panels"]
assert len({panel["id"] for panel in panels}) == len(panels)
taken = set()
for panel in panels:
    place = panel["gridPos"]
    cells = {
        (x, y)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    }
    assert place["x"] + place["w"] <= 24 and not cells & taken, panel["title"]
    taken |= cells
