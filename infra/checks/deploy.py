"""Deploys the packaged stack into moto's server, as osls would, and writes down what then exists.

    python deploy.py PACKAGE_FOLDER ARTIFACT_ROOT OUTPUT_JSON

The stack with the bucket is created, the functions' archives are put into it, and the stack is updated to the whole
template. test/stack holds the output to the rules of design.md. Nothing leaves this machine: credentials are made up.
"""

import ast
import json
import logging
import pathlib
import sys
import warnings

import boto3
from moto.server import ThreadedMotoServer

REGION = "eu-central-1"
STACK = "kbind-serverless-dev"


def client(endpoint, service):
    return boto3.client(
        service,
        region_name=REGION,
        endpoint_url=endpoint,
        aws_access_key_id="made",
        aws_secret_access_key="up",
    )


def read(folder, name):
    return json.loads((pathlib.Path(folder) / name).read_text())


def deploy(endpoint, package, root):
    formation = client(endpoint, "cloudformation")
    create = read(package, "cloudformation-template-create-stack.json")
    update = read(package, "cloudformation-template-update-stack.json")
    formation.create_stack(StackName=STACK, TemplateBody=json.dumps(create))
    bucket = formation.describe_stack_resource(
        StackName=STACK, LogicalResourceId="ServerlessDeploymentBucket"
    )["StackResourceDetail"]["PhysicalResourceId"]
    storage = client(endpoint, "s3")
    for resource in update["Resources"].values():
        if resource["Type"] == "AWS::Lambda::Function":
            key = resource["Properties"]["Code"]["S3Key"]
            name = key.rsplit("/", 1)[-1]
            archive = pathlib.Path(root) / ".build" / "functions" / name
            storage.put_object(Bucket=bucket, Key=key, Body=archive.read_bytes())
    formation.update_stack(
        StackName=STACK,
        TemplateBody=json.dumps(update),
        Capabilities=["CAPABILITY_NAMED_IAM"],
    )
    return update


def document(policy):
    # moto keeps a role's inline policies as Python would print them.
    return ast.literal_eval(policy) if isinstance(policy, str) else policy


def read_back(endpoint):
    formation = client(endpoint, "cloudformation")
    # What moto cannot make has no name there; test/stack says which those may be.
    resources = [
        r
        for r in formation.describe_stack_resources(StackName=STACK)["StackResources"]
        if "LogicalResourceId" in r
    ]
    physical = {r["LogicalResourceId"]: r.get("PhysicalResourceId") for r in resources}
    types = {r["LogicalResourceId"]: r["ResourceType"] for r in resources}

    def of(kind):
        return {n: physical[n] for n, t in types.items() if t == kind}

    sqs, lam = client(endpoint, "sqs"), client(endpoint, "lambda")
    iam = client(endpoint, "iam")
    tables, logs = client(endpoint, "dynamodb"), client(endpoint, "logs")
    events = client(endpoint, "events")
    roles = {}
    for name, role in of("AWS::IAM::Role").items():
        policies = iam.list_role_policies(RoleName=role)["PolicyNames"]
        roles[name] = {
            "arn": iam.get_role(RoleName=role)["Role"]["Arn"],
            "policies": [
                document(iam.get_role_policy(RoleName=role, PolicyName=p)["PolicyDocument"])
                for p in policies
            ],
        }
    return {
        "resources": types,
        "stack": formation.describe_stacks(StackName=STACK)["Stacks"][0]["StackStatus"],
        "queues": {
            name: sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
            for name, url in of("AWS::SQS::Queue").items()
        },
        "functions": {
            name: lam.get_function_configuration(FunctionName=function)
            for name, function in of("AWS::Lambda::Function").items()
        },
        "mappings": lam.list_event_source_mappings()["EventSourceMappings"],
        "roles": roles,
        "tables": {
            name: tables.describe_table(TableName=table)["Table"]
            for name, table in of("AWS::DynamoDB::Table").items()
        },
        "logGroups": logs.describe_log_groups()["logGroups"],
        "rules": events.list_rules()["Rules"],
    }


def main(package, root, output):
    # test/stack says what moto may leave out; one line for each request helps nobody.
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        deploy(endpoint, package, root)
        found = read_back(endpoint)
    finally:
        server.stop()
    pathlib.Path(output).write_text(json.dumps(found, default=str, indent=1))
    counts = {k: len(v) for k, v in found.items() if not isinstance(v, str)}
    print(f"deployed into moto: {counts}")


if __name__ == "__main__":
    main(*sys.argv[1:])
