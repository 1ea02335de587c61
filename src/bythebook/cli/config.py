"""`bythebook config`: every setting with its value and origin."""

from bythebook.cli.console import DataDir, Json, bold, dim, echo, load_settings, print_json


def config(data_dir: DataDir = None, json: Json = False) -> None:
    """Show every setting with its value and origin."""
    shown = load_settings(data_dir=data_dir).describe()
    if json:
        print_json({name: {"value": value, "origin": origin, "help": text} for name, value, origin, text in shown})
        return
    width = max(len(name) for name, *_ in shown)
    for name, value, origin, text in shown:
        echo(f"{bold(name.ljust(width))}  {value or '(empty)'}  {dim(f'({origin})')}")
        echo(f"{' ' * width}  {dim(text)}")
