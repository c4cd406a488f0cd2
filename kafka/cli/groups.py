"""``purekafka groups``: list and describe groups, their lag, and their committed offsets."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any, Final

from kafka._text import printable
from kafka.cli.arguments import CommandError
from kafka.cli.connection import Connection
from kafka.cli.grammar import TABLE, Noun, Verb, arg
from kafka.cli.group_lag import LAG, chosen_groups
from kafka.cli.group_offsets import GROUP, VERBS, known_groups
from kafka.cli.output import Column, agreed, counted, emit, print_table, report, report_brokers, row_of

if TYPE_CHECKING:
    from kafka.admin import MemberDescription, ShareMember, StreamsMember
    from kafka.cli.group_offsets import Described

_LIST_COLUMNS: Final = Column.of("group_id=GROUP", "state", "type", "protocol_type=PROTOCOL")
_GROUPS: Final = arg("groups GROUP...", "names of groups, or patterns with *", complete="group")


@Verb(
    "list: list the groups of all brokers",
    [arg("--state STATE...", "only groups in this state"), arg("--type TYPE...", "only groups of this type")],
    examples=["--sandbox", "--sandbox --state Empty --format '{group_id}'"],
    lists=True,
)
def _list(arguments: Namespace, connection: Connection) -> int:
    found = connection.admin().list_groups(
        states_filter=arguments.state, types_filter=arguments.type, raise_errors=False
    )
    code = report_brokers(arguments, found.failed)
    names = ("group_id", "state=group_state", "type=group_type", "protocol_type")
    rows = [row_of(group, *names) for group in sorted(found, key=lambda one: str(one.group_id))]
    return emit(arguments, rows, _LIST_COLUMNS) or code


@Verb(
    "describe: show the state of groups and their members with their partitions",
    _GROUPS,
    examples=["billing --sandbox", "purekafka group describe billing --sandbox --format json"],
    lists=True,
)
def _describe(arguments: Namespace, connection: Connection) -> int:
    names = chosen_groups(connection.admin(), arguments.groups)
    known = known_groups(arguments, connection.admin(), names)
    items = [_item(group) for group in known.values()]
    rows = [{"group_id": group.group_id, **_member(member)} for group in known.values() for member in group.members]
    columns = [*Column.of("group_id=GROUP"), *_MEMBER_COLUMNS]
    code = emit(arguments, rows, columns, items=items, table=lambda: _print_groups(arguments, items))
    return 1 if len(known) < len(names) else code


def _item(group: Described) -> dict[str, Any]:
    kind = group.group_type
    item = {
        "group_id": group.group_id,
        "state": group.group_state,
        "type": kind,
        "protocol_type": kind if kind in {"share", "streams"} else group.protocol_type,
        "assignor": group.assignor_name if kind == "share" else "" if kind == "streams" else group.protocol_data,
        "coordinator": group.coordinator_id,
        "members": [_member(member) for member in group.members],
    }
    if kind == "streams":
        item["subtopologies"] = [
            {
                **row_of(one, "subtopology_id", "source_topics"),
                "repartition_topics": sorted(one.repartition_source_topics),
                "changelog_topics": sorted(one.state_changelog_topics),
            }
            for one in group.subtopologies
        ]
    return item


_MEMBER_COLUMNS: Final = Column.of("client_id=CLIENT", "host", "assignment=PARTITIONS", "member_id=MEMBER")


_SUBTOPOLOGY_COLUMNS: Final = Column.of(
    "subtopology_id=SUBTOPOLOGY", "source_topics", "repartition_topics", "changelog_topics"
)


def _member(member: MemberDescription | ShareMember | StreamsMember) -> dict[str, Any]:
    return {
        **row_of(member, "member_id", "client_id", "host=client_host"),
        "group_instance_id": getattr(member, "group_instance_id", None),
        "assignment": _assignment(member),
    }


def _assignment(member: MemberDescription | ShareMember | StreamsMember) -> dict[str, list[int]] | None:
    from kafka.admin import ShareMember, StreamsMember

    found: dict[str, list[int]] = {}
    if isinstance(member, ShareMember):
        for topic, number in sorted(member.assigned_partitions):
            found.setdefault(topic, []).append(number)
        return found
    if isinstance(member, StreamsMember):
        return {f"tasks of {name}": sorted(numbers) for name, numbers in sorted(member.assignment.active.items())}
    assigned = getattr(member.member_assignment, "assigned_partitions", None)
    if assigned is None:
        return None
    return {entry.topic: sorted(entry.partitions) for entry in sorted(assigned, key=lambda one: str(one.topic))}


def _print_groups(arguments: Namespace, items: list[dict[str, Any]]) -> None:
    for number, item in enumerate(items):
        if number:
            print()
        assignor = f", {item['assignor']}" if item["assignor"] else ""
        members = item["members"]
        what = f"{item['state']}, {item['type']}{assignor}, {counted(len(members), 'member')}"
        print(f"Group {printable(item['group_id'])}: {what}")
        if item.get("subtopologies"):
            print_table(arguments, item["subtopologies"], _SUBTOPOLOGY_COLUMNS)
        if members:
            rows = [
                {
                    **member,
                    "assignment": " ".join(
                        f"{topic}:{','.join(map(str, numbers))}"
                        for topic, numbers in (member["assignment"] or {}).items()
                    ),
                }
                for member in members
            ]
            print_table(arguments, rows, _MEMBER_COLUMNS)


@Verb(
    "delete: delete groups without members",
    [_GROUPS, *TABLE],
    examples=["billing --yes --sandbox", "billing --dry-run --sandbox"],
    asks=True,
)
def _delete(arguments: Namespace, connection: Connection) -> int:
    admin = connection.admin()
    names = chosen_groups(admin, arguments.groups)
    known = known_groups(arguments, admin, names)
    alive = {
        name: CommandError(
            f"group {name!r} has {counted(len(group.members), 'member')}: stop them first "
            f"(purekafka groups describe {name} shows them)"
        )
        for name, group in known.items()
        if group.members
    }
    code = report(arguments, alive) | (1 if len(known) < len(names) else 0)
    known = {name: group for name, group in known.items() if name not in alive}
    if not known:
        return code
    rows = [
        {"group_id": name, "state": group.group_state, "members": len(group.members)} for name, group in known.items()
    ]
    if not agreed(
        connection,
        f"Delete {counted(len(known), 'group')} with all offsets?",
        rows,
        Column.of("group_id=GROUP", "state", "members"),
    ):
        return code
    return code | report(arguments, admin.delete_groups(list(known), raise_errors=False), "deleted")


@Verb(
    "remove-members: remove members from a group; they may join again",
    [GROUP, arg("--member ID...", "only these members; may be repeated"), *TABLE],
    examples=["readers --yes -b localhost:9092", "readers --member consumer-1 --dry-run -b localhost:9092"],
    asks=True,
)
def _remove_members(arguments: Namespace, connection: Connection) -> int:
    admin = connection.admin()
    known = known_groups(arguments, admin, [arguments.group])
    if not known:
        return 1
    if known[arguments.group].group_type == "share":
        raise CommandError(f"{arguments.group!r} is a share group, whose members leave by themselves: stop them")
    members = [_member(member) for member in known[arguments.group].members]
    if arguments.member:
        members = [one for one in members if {one["member_id"], one["group_instance_id"]} & set(arguments.member)]
    if not members:
        such = "such members: --member takes MEMBER of groups describe" if arguments.member else "members"
        raise CommandError(f"group {arguments.group!r} has no {such}")
    if not agreed(
        connection,
        f"Remove {counted(len(members), 'member')} of group {arguments.group}?",
        members,
        [*_MEMBER_COLUMNS[:2], _MEMBER_COLUMNS[3]],
    ):
        return 0
    names = [one["member_id"] for one in members]
    answers = admin.remove_group_members(arguments.group, names, raise_errors=False)
    return report(arguments, {f"member {member}": error for member, error in answers.items()}, "removed")


COMMAND = Noun("groups", [_list, _describe, LAG, *VERBS, _delete, _remove_members])
